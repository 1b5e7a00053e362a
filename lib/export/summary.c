/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* End of an export: sums, the account, warnings. */
#include <inttypes.h>
#include <string.h>

#include "base/plural.h"
#include "base/vec.h"
#include "export/exporter.h"
#include "samples/sample_reader.h"

uint64_t export_result_gaps(const struct export_result *r)
{
	uint64_t gaps = 0;

	for (size_t i = 0; i < r->ledger_count; i++)
		gaps += r->ledger[i].gaps;
	return gaps;
}

void export_result_deinit(struct export_result *r)
{
	for (size_t i = 0; i < r->warning_count; i++)
		free(r->warnings[i]);
	free(r->warnings);
	for (size_t i = 0; i < r->fallback_count; i++) {
		free(r->fallbacks[i].event);
		free(r->fallbacks[i].why);
	}
	free(r->fallbacks);
	free(r->segment_ends);
	free(r->ledger);
	free(r->clock);
	*r = (struct export_result){ 0 };
}

/* Checks the controllers' syncs: the two readings around each one limit the error. */
static void summary_check_syncs(struct exporter *x)
{
	const struct trace_info *info = &x->index.info;
	uint64_t max = x->options->bound_max_ns ?: EXPORT_BOUND_NS, worst = 0;
	size_t count = 0;

	for (size_t i = 0; i < info->clock_count; i++) {
		const Traced__Capture__Clocks *c = info->clocks[i];
		uint64_t bound = (c->sync_after_ns - c->sync_before_ns + 1) / 2;

		if (!c->sync_id[0] || strcmp(c->sync_id, info->sync_id) == 0 || bound <= max)
			continue;
		count++;
		worst = MAX(worst, bound);
	}
	if (count)
		stream_index_warn(&x->index,
				  "%zu sync%s tied to the trace only within more than %" PRIu64
				  " microseconds, the worst within %" PRIu64,
				  count, plural(count, " is", "s are"), max / 1000,
				  (worst + 999) / 1000);
}

void summary_take_notes(struct exporter *x)
{
	for (size_t i = 0; i < x->index.info.note_count; i++) {
		x->index.incomplete |= x->index.info.notes[i]->missing;
		x->index.marks_lost |= x->index.info.notes[i]->marks_lost;
		stream_index_warn(&x->index, "%s", x->index.info.notes[i]->text);
	}
	if (x->late)
		stream_index_warn(&x->index,
				  "%" PRIu64 " event%s became known late: behind younger ones",
				  x->late, plural_s(x->late));
	summary_check_syncs(x);
	stream_index_settle(&x->index);
}

static int summary_add_fallback(struct export_result *ret, const struct event *ev, uint64_t count)
{
	struct export_fallback *f;

	if (vec_reserve_exact(ret->fallbacks, ret->fallback_count, 1) < 0)
		return -ENOMEM;
	f = &ret->fallbacks[ret->fallback_count];
	*f = (struct export_fallback){ .count = count, .why = strdup(ev->why_fallback) };
	if (!f->why || asprintf(&f->event, "%s:%s", ev->system, ev->name) < 0) {
		free(f->why);
		return -ENOMEM;
	}
	ret->fallback_count++;
	ret->fallback_events += count;
	return 0;
}

/* Counts events by kind. */
static int summary_count_events(struct exporter *x, struct export_result *ret)
{
	uint64_t unknown = 0;
	unsigned types = 0;

	for (unsigned id = 0; id < x->kinds_end; id++) {
		const struct event *ev;

		if (!x->kinds[id].count)
			continue;
		types++;
		ev = event_table_find(x->index.info.events, (uint16_t)id);
		if (!ev)
			unknown += x->kinds[id].count;
		else if (ev->why_fallback && summary_add_fallback(ret, ev, x->kinds[id].count) < 0)
			return -ENOMEM;
	}
	ret->event_types = types;
	x->index.incomplete |= unknown > 0;
	if (unknown)
		stream_index_warn(&x->index,
				  "%" PRIu64 " event%s no format in the stream: only %s could be "
				  "written",
				  unknown, plural(unknown, " has", "s have"),
				  plural(unknown, "its type number", "their type numbers"));
	if (x->too_short)
		stream_index_warn(&x->index, "%" PRIu64 " damaged record%s left out", x->too_short,
				  plural(x->too_short, " was", "s were"));
	return 0;
}

static void summary_set_samples_lost(struct exporter *x, uint32_t cpu, uint64_t lost)
{
	struct ledger_cpu *c = ledger_find(&x->ledger, cpu);

	if (c)
		c->row.samples_lost = MAX(c->row.samples_lost, lost);
}

/*
 * By the kernel's counts, for every format; before Linux 6.0, which has none, by the records that
 * a format's samples were read from.
 */
static void summary_count_lost_samples(struct exporter *x)
{
	const Traced__Capture__SampleCounts *counts = x->index.info.sample_counts;
	struct sample_feed_sum sum;

	for (size_t i = 0; counts && i < counts->n_cpus; i++)
		if (counts->cpus[i]->counted)
			summary_set_samples_lost(x, counts->cpus[i]->cpu, counts->cpus[i]->lost);
	if (!x->marks || !mark_feed_samples(x->marks, &sum))
		return;
	for (size_t i = 0; i < sum.samples.cpu_count; i++)
		summary_set_samples_lost(x, sum.samples.cpus[i].cpu, sum.samples.cpus[i].lost);
}

/* Sums, and a copy of the ledger. */
static int summary_copy_ledger(struct exporter *x, struct export_result *ret)
{
	bool damaged = false;

	summary_count_lost_samples(x);
	free(ret->ledger);
	ret->ledger = calloc(MAX(x->ledger.count, (size_t)1), sizeof(*ret->ledger));
	if (!ret->ledger)
		return -ENOMEM;
	ret->ledger_count = x->ledger.count;
	ret->events = ret->lost = 0;
	for (size_t i = 0; i < x->ledger.count; i++) {
		ret->ledger[i] = x->ledger.cpus[i].row;
		ret->events += ret->ledger[i].events;
		ret->lost += ret->ledger[i].lost_overrun + ret->ledger[i].lost_other;
		damaged |= x->ledger.cpus[i].damaged;
	}
	free(ret->clock);
	ret->clock = strdup(x->index.info.header->trace_clock);
	if (!ret->clock)
		return -ENOMEM;
	ret->span_ns = x->last_ts - x->first_ts;
	ret->own_events = x->own_events;
	ret->histograms = x->ops->has_histograms ? x->index.info.histogram_count : 0;
	ret->incomplete = x->index.incomplete || damaged || x->too_short;
	return 0;
}

/* Warns of content that the format can't hold beside its events. */
static void summary_warn_left_out(struct exporter *x)
{
	bool marks = x->options->merge_count || x->options->profile_count || x->index.marks.count;
	const char *const what[] = {
		marks ? "applications' marks" : NULL,
		x->index.polls.count || x->index.polls.forgotten ? "polled files" : NULL,
		sample_reader_wanted(&x->index) && !x->ops->keeps_samples ? "samples" : NULL,
		x->index.info.last_boot ? "marks of the crash" : NULL,
	};
	_cleanup_buf_ struct buf list = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(what); i++)
		if (what[i])
			buf_printf(&list, "%s%s", list.len ? " and " : "", what[i]);
	if (list.len && buf_string(&list))
		stream_index_warn(&x->index, "a .%s has no place for %s: they are left out",
				  x->ops->format.name, list.data);
}

static void summary_warn_of_part(struct exporter *x, const struct export_result *ret)
{
	_cleanup_buf_ struct buf what = BUF_INIT;
	uint64_t events = 0, marks = x->marks ? mark_feed_left_out(x->marks) : 0;

	selection_describe(x->gate, &what);
	/* A sink that selects does not count what it leaves out. */
	if (x->ops->selects) {
		stream_index_warn(&x->index, "this is a part of the recording (%s)",
				  buf_string(&what) ?: "");
		return;
	}
	for (size_t i = 0; i < ret->ledger_count; i++)
		events += ret->ledger[i].left_out;
	stream_index_warn(&x->index,
			  "a part of the recording (%s): %" PRIu64 " event%s and %" PRIu64
			  " mark%s are left out",
			  buf_string(&what) ?: "", events, plural_s(events), marks,
			  plural_s(marks));
}

/* Moves the warnings to the result before the sink closes, so that it can write them. */
static int summary_take_warnings(struct exporter *x, struct export_result *ret)
{
	for (size_t i = 0; i < x->ledger.count; i++)
		if (x->ledger.cpus[i].damaged)
			stream_index_warn(&x->index, "part of what CPU %u recorded is damaged",
					  x->ledger.cpus[i].row.cpu);
	if (x->gate && !x->options->selection.is_whole)
		summary_warn_of_part(x, ret);
	/* Otherwise the other warnings explain the missing events. */
	if (ret->events <= ret->own_events && !ret->histograms && !x->index.incomplete)
		stream_index_warn(&x->index, EXPORT_NOTHING);
	if (x->index.info.histogram_count && !x->ops->has_histograms &&
	    !x->options->tables_have_histograms)
		stream_index_warn(&x->index,
				  "histograms are left out: 'tracectl report hist' shows "
				  "those of a .traced");
	if (x->options->json_array)
		stream_index_warn(&x->index, "an array has no place for the kernel's text: "
					     "it is left out");
	if (!x->ops->mark && !x->ops->keeps_marks)
		summary_warn_left_out(x);
	if (x->ops->warn)
		x->ops->warn(x->sink, &x->index);
	if (x->marks) {
		uint64_t left_out = x->ops->marks_left_out ? x->ops->marks_left_out(x->sink) : 0;

		ret->marks = mark_feed_count(x->marks);
		if (left_out)
			stream_index_warn(&x->index, "%" PRIu64 " mark%s", left_out,
					  plural(left_out,
						 " is left out: it ends what never began, or has "
						 "nothing that a viewer shows",
						 "s are left out: they end what never began, or "
						 "have nothing that a viewer shows"));
		if (mark_feed_power(x->marks).len &&
		    (!x->ops->format.one_string || x->options->json_array))
			stream_index_warn(&x->index,
					  "this output has no place for the power trace of a "
					  "merged file: it is left out");
		/* A merged file may well have marks outside of a part. */
		mark_feed_warn(x->marks, &x->index, x->gate ? 0 : x->first_ts, x->last_ts);
	}
	ret->incomplete |= x->index.incomplete;
	ret->marks_lost = x->index.marks_lost;
	ret->warnings = TAKE_PTR(x->index.warnings);
	ret->warning_count = x->index.warning_count;
	x->index.warning_count = 0;
	return 0;
}

int summary_make(struct exporter *x, struct export_result *ret)
{
	int r = summary_count_events(x, ret);

	if (r == 0)
		r = summary_copy_ledger(x, ret);
	return r == 0 ? summary_take_warnings(x, ret) : r;
}

int summary_amend(struct exporter *x, struct export_result *ret)
{
	if (stream_index_settle(&x->index) < 0)
		return -ENOMEM;
	if (!x->index.warning_count)
		return 0;
	if (vec_reserve_exact(ret->warnings, ret->warning_count, x->index.warning_count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < x->index.warning_count; i++)
		ret->warnings[ret->warning_count++] = x->index.warnings[i];
	x->index.warning_count = 0;
	ret->incomplete |= x->index.incomplete;
	return 0;
}
