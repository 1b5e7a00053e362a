/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/export_result.h"

#include "base/io.h"

#define ERRNO_MAX 4095 /* the kernel's own limit */

int export_result_write(int fd, const Traced__Control__ExportResult *message)
{
	size_t len = traced__control__export_result__get_packed_size(message);
	_cleanup_free_ uint8_t *packed = malloc(len ? len : 1);

	if (!packed)
		return EXIT_FAILURE;
	traced__control__export_result__pack(message, packed);
	return write_full(fd, packed, len) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int export_result_send_error(int fd, const struct error *err)
{
	Traced__Control__ExportResult message = TRACED__CONTROL__EXPORT_RESULT__INIT;
	Traced__Control__Error e = TRACED__CONTROL__ERROR__INIT;

	e.code = (uint32_t)err->code;
	if (err->message)
		e.message = err->message;
	if (err->hint)
		e.hint = err->hint;
	message.error = &e;
	return export_result_write(fd, &message);
}

static void export_result_fill_row(Traced__Control__LedgerRow *to, const struct ledger_row *from)
{
	traced__control__ledger_row__init(to);
	to->cpu = from->cpu;
	to->written = from->written;
	to->events = from->events;
	to->lost_overrun = from->lost_overrun;
	to->lost_other = from->lost_other;
	to->gaps = from->gaps;
	to->unread = from->unread;
	to->samples_lost = from->samples_lost;
	to->left_out = from->left_out;
	to->last_ns = from->last_ts;
}

static void export_result_fill_fallback(Traced__Control__Fallback *to,
					const struct export_fallback *from)
{
	traced__control__fallback__init(to);
	to->event = from->event;
	if (from->why)
		to->why = from->why;
	to->count = from->count;
}

static void export_result_fill(Traced__Control__ExportResult *to, const struct export_result *from)
{
	to->events = from->events;
	to->lost = from->lost;
	to->bytes = from->bytes;
	to->event_types = from->event_types;
	to->fallback_events = from->fallback_events;
	to->incomplete = from->incomplete;
	to->marks_lost = from->marks_lost;
	to->warnings = from->warnings;
	to->n_warnings = from->warning_count;
	to->export_ns = from->export_ns;
	to->cpu_ns = from->cpu_ns;
	to->peak_rss_bytes = from->peak_rss_bytes;
	to->span_ns = from->span_ns;
	to->own_events = from->own_events;
	to->histograms = from->histograms;
	to->begins_apart_ns = from->begins_apart_ns;
	to->clock = from->clock ?: (char *)"";
	to->segment_ends = from->segment_ends;
	to->n_segment_ends = from->segment_count;
}

/* Builds the pointers to rows that protobuf-c needs. */
int export_result_send(int fd, const struct export_result *result)
{
	size_t n_rows = result->ledger_count, n_fallbacks = result->fallback_count;
	Traced__Control__ExportResult message = TRACED__CONTROL__EXPORT_RESULT__INIT;
	_cleanup_free_ Traced__Control__LedgerRow *rows = calloc(n_rows + 1, sizeof(*rows));
	_cleanup_free_ Traced__Control__LedgerRow **row_list =
		calloc(n_rows + 1, sizeof(*row_list));
	_cleanup_free_ Traced__Control__Fallback *fallbacks =
		calloc(n_fallbacks + 1, sizeof(*fallbacks));
	_cleanup_free_ Traced__Control__Fallback **fallback_list =
		calloc(n_fallbacks + 1, sizeof(*fallback_list));

	if (!rows || !row_list || !fallbacks || !fallback_list)
		return EXIT_FAILURE;
	for (size_t i = 0; i < n_rows; i++) {
		export_result_fill_row(&rows[i], &result->ledger[i]);
		row_list[i] = &rows[i];
	}
	for (size_t i = 0; i < n_fallbacks; i++) {
		export_result_fill_fallback(&fallbacks[i], &result->fallbacks[i]);
		fallback_list[i] = &fallbacks[i];
	}
	export_result_fill(&message, result);
	message.ledger = row_list;
	message.n_ledger = n_rows;
	message.fallbacks = fallback_list;
	message.n_fallbacks = n_fallbacks;
	return export_result_write(fd, &message);
}

/* Checks the code: a compromised process may send any number, but callers rely on an errno. */
int export_result_take_error(const Traced__Control__Error *from, struct error *err)
{
	bool is_errno = from->code >= 1 && from->code <= ERRNO_MAX;
	int r = error_set(err, is_errno ? -(int)from->code : -EIO, "%s", from->message);

	if (*from->hint)
		error_hint(err, "%s", from->hint);
	return r;
}
