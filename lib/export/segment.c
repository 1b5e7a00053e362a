/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/segment.h"

#include <string.h>

#include "export/sink.h"

static int segment_make_rows(const struct ledger *ledger, struct export_result *result,
			     struct error *err)
{
	result->ledger = calloc(MAX(ledger->count, (size_t)1), sizeof(*result->ledger));
	result->ledger_count = ledger->count;
	return result->ledger ? 0 : error_errno(err, -ENOMEM, "can't keep the account");
}

static void segment_sum_rows(struct export_result *result)
{
	result->events = result->lost = 0;
	for (size_t i = 0; i < result->ledger_count; i++) {
		result->events += result->ledger[i].events;
		result->lost += result->ledger[i].lost_overrun + result->ledger[i].lost_other;
	}
}

int segment_cut(struct segment *s, struct sink *sink, struct output *out, struct ledger *ledger,
		struct export_result *result, uint64_t ts, struct error *err)
{
	_cleanup_free_ struct ledger_row *rows = NULL;
	int r = segment_make_rows(ledger, result, err);

	if (r < 0)
		return r;
	rows = result->ledger;
	ledger_cut(ledger, rows);
	segment_sum_rows(result);
	r = sink->ops->cut(sink, result, err);
	segment_begin(s, out);
	s->first_ts = ts;
	return r;
}

int segment_close(struct sink *sink, struct output *out, const struct ledger *ledger,
		  struct export_result *result, struct error *err)
{
	_cleanup_free_ struct ledger_row *rows = NULL;
	int r = segment_make_rows(ledger, result, err);

	if (r < 0)
		return r;
	rows = result->ledger;
	ledger_rest(ledger, rows);
	segment_sum_rows(result);
	r = sink->ops->close(sink, result, err);
	if (r < 0)
		return r;
	r = output_cut(out, true);
	return r < 0 ? error_errno(err, r, "can't write the output") : 0;
}

static bool clock_counts_time(const char *clock)
{
	return !trace_clock_counts(clock) && strcmp(clock, "uptime") != 0;
}

int segment_check(const struct sink_ops *ops, const char *clock, const struct export_rotate *rotate,
		  struct error *err)
{
	if (!ops->cut) {
		error_set(err, -EINVAL, "a .%s is one %s: it can't be rotated", ops->format.name,
			  ops->format.directory ? "directory" : "file");
		error_hint(err, "write .pftrace, .json, .html or .txt");
		return -EINVAL;
	}
	if (rotate->ns && clock && !clock_counts_time(clock)) {
		error_set(err, -EINVAL, "the trace clock '%s' does not measure the time of a file",
			  clock);
		error_hint(err, "rotate by size, or record with -C boot");
		return -EINVAL;
	}
	return 0;
}
