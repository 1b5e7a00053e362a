/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Main loop of the exporter: index the stream, scan the tasks, then pass events from the merge to
 * the sink. The loop allocates nothing per event.
 */
#include "export/export.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "base/io.h"
#include "export/exporter.h"
#include "export/sink.h"
#include "print/funcgraph.h"
#include "trace/task_scan.h"

static void exporter_deinit(struct exporter *x)
{
	if (x->sink)
		x->ops->free(x->sink);
	mark_feed_free(x->marks);
	output_deinit(&x->out);
	merge_free(x->merge);
	task_feed_free(x->tasks);
	ledger_deinit(&x->ledger);
	free(x->kinds);
	stream_index_deinit(&x->index);
}

static void fill_names(void *userdata)
{
	struct exporter *x = userdata;

	/* Not an error: without names, lines have "<...>", as the kernel's do. */
	if (task_scan_names(&x->index, &x->reader, NULL) < 0)
		stream_index_warn(&x->index, "some tasks have no name: the trace could not be "
					     "searched for them");
}

static int open_marks(struct exporter *x, struct error *err)
{
	const struct export_options *o = x->options;
	int r;

	if (!x->ops->mark) {
		x->index.incomplete |= o->merge_count + o->profile_count > 0;
		return 0;
	}
	if (!o->merge_count && !o->profile_count && !x->index.marks.count &&
	    !sample_reader_wanted(&x->index) && !o->follow)
		return 0;
	r = mark_feed_new(&x->marks, o, &x->index, &x->reader, err);
	x->env.marks = x->marks;
	return r;
}

/* End of the stream range that is no longer needed; it starts after the stream's head. */
static uint64_t done_until(const struct exporter *x)
{
	uint64_t until = x->reader.offset;

	if (!x->merge)
		return x->data_from;
	until = MIN(until, merge_needs(x->merge));
	until = MIN(until, task_feed_needs(x->tasks));
	if (x->marks)
		until = MIN(until, mark_feed_needs(x->marks));
	return MAX(until, x->data_from);
}

/* Loads the stream up to the next FLUSH. 1: more may follow; 0: complete. */
static int load_more(struct exporter *x, struct error *err)
{
	const struct export_follow *follow = x->options->follow;
	int r;

	if (!follow)
		return stream_index_finish(&x->index, err);
	for (;;) {
		r = stream_index_next(&x->index, err);
		if (r > 0 && !x->data_from)
			x->data_from = x->index.last_flush;
		if (r != 0)
			return r;
		if (x->index.ended || x->no_more)
			return stream_index_finish(&x->index, err);
		r = follow->wait(follow->userdata, x->data_from, done_until(x));
		if (r < 0)
			return error_errno(err, r, "can't follow the recording");
		x->no_more = r == 0;
		r = stream_reader_refresh(&x->reader, err);
		if (r < 0)
			return r;
	}
}

/* 1: the stream is still being written; 0: it is complete. */
static int open_stream(struct exporter *x, int fd, struct error *err)
{
	const struct index_options o = { .raw_addresses = x->options->raw_addresses,
					 .trace_options = x->options->trace_options };
	int r, more;

	r = stream_reader_init(&x->reader, fd, err);
	x->reader.pages_fd = x->options->pages_fd;
	if (r == 0)
		r = stream_index_open(&x->index, &x->reader, &o, err);
	if (r < 0)
		return r;
	more = load_more(x, err);
	if (more < 0)
		return more;
	x->env.followed = more;
	r = task_feed_new(&x->tasks, &x->index, &x->reader, err);
	if (r == 0)
		r = merge_new(&x->merge, &x->index.info.layout, &x->index.rings[BUFFER_MAIN],
			      &x->reader, err);
	if (r < 0)
		return r;
	/* A followed stream can't be searched again: its consumed part was freed. */
	if (!x->options->follow && task_scan_may_name(&x->index))
		task_table_set_filler(x->index.info.tasks, fill_names, x);
	merge_lend(x->merge, &x->loan);
	x->env.loan = &x->loan;
	x->head = event_head_of(event_table_common(x->index.info.events),
				x->index.info.layout.big_endian);
	x->print = event_table_find_name(x->index.info.events, "ftrace", "print");
	x->kinds = calloc(EVENT_IDS, sizeof(*x->kinds));
	if (!x->kinds)
		return error_errno(err, -ENOMEM, "can't begin the export");
	if (sample_reader_wanted(&x->index)) {
		x->samples = (struct sample_source){ &x->index, &x->reader };
		x->env.samples = &x->samples;
	}
	r = open_marks(x, err);
	return r < 0 ? r : more;
}

static int give_loss(struct exporter *x, const struct merge_item *item, struct error *err)
{
	ledger_loss(&x->ledger, item);
	return x->ops->loss(x->sink, item->event.cpu, item->before_ts, item->after_ts, item->count,
			    err);
}

/* The recorder's mark is an ordinary print event; only its text identifies it. It occurs once. */
static bool is_own_mark(const struct exporter *x, const struct record *rec)
{
	const char *id = x->index.info.sync_id;

	return !x->own_events && *id && memmem(rec->data, rec->len, id, strlen(id));
}

/* Passes all marks before `until` to the sink. */
static int give_marks(struct exporter *x, uint64_t until, struct error *err)
{
	while (x->have_mark && x->mark.ts < until) {
		int r = x->ops->mark(x->sink, &x->mark, err);

		if (r == 0)
			r = mark_feed_next(x->marks, &x->mark, err);
		if (r < 0)
			return r;
		x->have_mark = r > 0;
	}
	x->mark_ts = x->have_mark ? x->mark.ts : UINT64_MAX;
	return 0;
}

/* In a followed stream, marks can't wait for the end: consumed data is freed. */
static bool marks_are_last(const struct exporter *x)
{
	return x->ops->marks_last && !x->env.followed;
}

/* Passes frames and metadata at once; the first mark with a time becomes x->mark. */
static int begin_marks(struct exporter *x, struct error *err)
{
	int r;

	if (!x->marks || x->have_mark)
		return 0;
	r = x->options->follow ? mark_feed_extend(x->marks, x->index.ripe, err) : 0;
	if (r == 0)
		r = mark_feed_next(x->marks, &x->mark, err);
	x->have_mark = r > 0;
	return r <= 0 || marks_are_last(x) ? MIN(r, 0) : give_marks(x, 1, err);
}

/* In a followed recording, a format may arrive late. */
static void learn_kind(struct exporter *x, struct event_kind *kind, uint16_t id)
{
	x->kinds_end = MAX(x->kinds_end, id + 1U);
	kind->desc = event_table_find(x->index.info.events, id);
	kind->special =
		kind->desc && (kind->desc == x->print || funcgraph_is(kind->desc, FUNCGRAPH_ENTRY));
}

static bool leaves(const struct trace_event *exit, uint64_t func)
{
	uint64_t left;

	return funcgraph_is(exit->desc, FUNCGRAPH_EXIT) &&
	       funcgraph_read_func(exit->desc, &exit->rec, &left) && left == func;
}

/* After a function entry: the next event may be its exit. */
static int look_ahead(struct exporter *x, struct trace_event *ev, struct trace_event *next,
		      struct error *err)
{
	uint64_t func;
	int r;

	/* Without a line of its own in the tree, the record may be on loan and must not move. */
	if (!funcgraph_read_func(ev->desc, &ev->rec, &func))
		return 0;
	r = merge_peek(x->merge, &ev->rec, &next->rec, err);
	if (r <= 0 || next->rec.len < x->head.least)
		return MIN(r, 0);
	event_head_read(&x->head, next);
	next->desc = event_table_find(x->index.info.events, next->id);
	next->exit = NULL;
	next->cpu = ev->cpu;
	if (next->pid == ev->pid && leaves(next, func))
		ev->exit = next;
	return 0;
}

static _noinline_ int look_closer(struct exporter *x, struct trace_event *ev,
				  struct trace_event *next, struct error *err)
{
	if (ev->desc != x->print)
		return look_ahead(x, ev, next, err);
	x->own_events += is_own_mark(x, &ev->rec);
	return 0;
}

/* The kernel never writes such a record: it is damaged, although its sub-buffer is valid. */
static _noinline_ int give_too_short(struct exporter *x, const struct trace_event *ev,
				     struct error *err)
{
	x->too_short++;
	return give_loss(x,
			 &(struct merge_item){
				 .event.cpu = ev->cpu,
				 .after_ts = ev->rec.ts,
				 .count = UINT64_MAX,
				 .damaged = true,
			 },
			 err);
}

_hot_ static int give_record(struct exporter *x, struct trace_event *ev, struct error *err)
{
	const uint64_t ts = ev->rec.ts;
	struct ledger_cpu *c = x->row;
	struct event_kind *kind;
	struct trace_event next;
	int r;

	if (unlikely(ev->rec.len < x->head.least))
		return give_too_short(x, ev, err);
	event_head_read(&x->head, ev);
	kind = &x->kinds[ev->id];
	if (unlikely(!kind->desc))
		learn_kind(x, kind, ev->id);
	kind->count++;
	ev->desc = kind->desc;
	ev->exit = NULL;

	if (unlikely(!c || c->row.cpu != ev->cpu))
		c = x->row = ledger_find(&x->ledger, ev->cpu);
	c->row.events++;
	c->last_ts = ts;
	if (unlikely(!x->first_ts))
		x->first_ts = ts;
	if (unlikely(ts < x->last_ts))
		x->late += x->env.followed;
	else
		x->last_ts = ts;
	if (unlikely(ts > x->mark_ts)) {
		r = give_marks(x, ts, err);
		if (r < 0)
			return r;
	}
	if (unlikely(kind->special)) {
		r = look_closer(x, ev, &next, err);
		if (r < 0)
			return r;
	}
	return x->ops->event(x->sink, ev, err);
}

/* Events between two looks at the clock, and time between two progress reports. */
#define PROGRESS_EVENTS 65536
#define PROGRESS_NS (200 * NSEC_PER_MSEC)

static void tell_progress(struct exporter *x)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), size = x->reader.size + x->reader.elsewhere;

	if (!x->options->progress || !size || now - x->told_ns < PROGRESS_NS)
		return;
	x->told_ns = now;
	x->options->progress(x->options->userdata, (double)merge_progress(x->merge) / (double)size);
}

/*
 * On ENOSPC and the like. The output may be all that remains of a followed recording: close the
 * file where it is. For a complete stream, which is kept, report the error instead.
 */
static bool close_full(struct exporter *x, int r, const struct error *err)
{
	if (r != -EOVERFLOW || !x->env.followed)
		return false;
	x->full = x->index.incomplete = true;
	stream_index_warn(&x->index, "%s: what came later is missing", err->message);
	return true;
}

/* Result that is written at the end of a segment; the account is added later. */
static struct export_result end_of_segment(const struct exporter *x)
{
	return (struct export_result){
		.warnings = x->index.warnings,
		.warning_count = x->index.warning_count,
		.incomplete = x->index.incomplete,
		.span_ns = x->last_ts - x->segment.first_ts,
	};
}

/*
 * Starts a new segment if the item belongs to the next one. A loss stays with the event after it.
 */
static int cut_before(struct exporter *x, const struct merge_item *item, int kind,
		      struct error *err)
{
	uint64_t ts = kind == MERGE_RECORD ? item->event.rec.ts : item->after_ts;
	bool after_loss = x->after_loss;
	struct export_result said;
	int r;

	x->after_loss = kind == MERGE_LOSS;
	if (after_loss || ts == UINT64_MAX || !segment_is_full(&x->segment, &x->out, x->sink, ts))
		return 0;
	r = give_marks(x, ts, err);
	if (r < 0)
		return r;
	if (marks_are_last(x))
		x->mark_ts = UINT64_MAX;
	said = end_of_segment(x);
	return segment_cut(&x->segment, x->sink, &x->out, &x->ledger, &said, ts, err);
}

/* Passes the available events to the sink. 0: all; 1: the sink asked for a pause; or -errno. */
_hot_ static int give_some(void *userdata, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	struct exporter *x = userdata;
	struct merge_item item;
	int kind, r;

	while ((kind = merge_next(x->merge, &item, err)) > 0) {
		r = likely(!x->rotates) ? 0 : cut_before(x, &item, kind, &why);
		if (likely(r == 0))
			r = likely(kind == MERGE_RECORD) ? give_record(x, &item.event, &why)
							 : give_loss(x, &item, &why);
		if (unlikely(r < 0))
			return close_full(x, r, &why) ? 0 : error_move(err, &why);
		if (unlikely(++x->untold == PROGRESS_EVENTS)) {
			x->untold = 0;
			tell_progress(x);
		}
		if (unlikely(x->loan.pause))
			return 1;
	}
	return kind;
}

/* Passes all available events, in one or more threads. */
static int give_ripe(struct exporter *x, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	int r;

	r = ledger_extend(&x->ledger, &x->index);
	x->row = NULL;
	if (r < 0)
		return error_errno(err, r, "can't keep the account");
	r = merge_extend(x->merge, x->index.ripe, err);
	if (r == 0)
		r = begin_marks(x, err);
	if (r == 0)
		r = x->ops->run ? x->ops->run(x->sink, give_some, x, err) : give_some(x, err);
	if (r == 0 && !x->full && x->options->follow && x->marks) {
		r = give_marks(x, UINT64_MAX, &why);
		if (r < 0)
			return close_full(x, r, &why) ? 0 : error_move(err, &why);
	}
	return r;
}

static int copy_stream(struct exporter *x, bool last, struct error *err)
{
	return x->ops->copy ? x->ops->copy(x->sink, &x->index, last, err) : 0;
}

/* In a followed recording: flushes what is there to the output. */
static int hand_out(struct exporter *x, struct error *err)
{
	int r = x->ops->sync ? x->ops->sync(x->sink, err) : 0;

	if (r == 0)
		r = copy_stream(x, false, err);
	if (r < 0)
		return r;
	r = output_sync(&x->out);
	if (r < 0)
		return error_errno(err, r, "can't write the output");
	merge_forget(x->merge, &x->index.rings[BUFFER_MAIN]);
	if (!x->marks)
		mark_ring_list_forget(&x->index.marks);
	return 0;
}

/* more: the stream is still being written. */
static int give_all(struct exporter *x, int more, struct error *err)
{
	int r;

	x->mark_ts = UINT64_MAX;
	for (;;) {
		r = give_ripe(x, err);
		if (r == 0 && (!more || x->full))
			return x->full ? 0 : give_marks(x, UINT64_MAX, err);
		if (r < 0)
			return r;
		r = hand_out(x, err);
		if (r < 0)
			return r;
		more = load_more(x, err);
		if (more < 0)
			return more;
		r = task_feed_advance(x->tasks, err);
		if (r < 0)
			return r;
	}
}

static uint64_t cpu_time_ns(void)
{
	return now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void measure(struct export_result *ret, uint64_t began, uint64_t cpu_began)
{
	struct rusage usage;

	ret->export_ns = now_ns(CLOCK_MONOTONIC) - began;
	ret->cpu_ns = cpu_time_ns() - cpu_began;
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		ret->peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

static int end_copy(struct exporter *x, struct error *err)
{
	int r = copy_stream(x, true, err);

	if (r < 0)
		return r;
	r = output_flush(&x->out, true);
	return r < 0 ? error_errno(err, r, "can't write the stream") : 0;
}

static int close_sink(struct exporter *x, const struct export_result *ret, struct error *err)
{
	struct export_result last = *ret;
	int r;

	if (x->rotates) {
		last.span_ns = x->last_ts - x->segment.first_ts;
		return segment_close(x->sink, &x->out, &x->ledger, &last, err);
	}
	r = x->ops->close(x->sink, ret, err);
	if (r == 0 && x->ops->format.directory) {
		r = output_cut(&x->out, true);
		return r < 0 ? error_errno(err, r, "can't write the output") : 0;
	}
	return r == 0 && x->ops->copy ? end_copy(x, err) : r;
}

static int prepare_segments(struct exporter *x, struct error *err)
{
	const struct export_options *o = x->options;

	if (!segment_wanted(&o->rotate))
		return 0;
	x->segment.limit = o->rotate;
	/* Start a new file before the string exceeds what its readers can hold. */
	if (x->ops->string_bound)
		x->segment.raw_max = (o->json_string_max ?: EXPORT_JSON_MAX) / 16 * 15;
	return segment_check(x->ops, x->index.info.header->trace_clock, &o->rotate, err);
}

static int exporter_late_loss(void *sink, uint32_t cpu, uint64_t last_ts, uint64_t count,
			      struct error *err)
{
	struct sink *s = sink;

	return s->ops->loss(s, cpu, last_ts, UINT64_MAX, count, err);
}

static int run_sink(struct exporter *x, int out_fd, int more, struct export_result *ret,
		    struct error *err)
{
	int r;

	r = task_feed_advance(x->tasks, err);
	if (r < 0)
		return r;
	if (output_init(&x->out, out_fd, x->ops->gzip) < 0)
		return error_errno(err, -ENOMEM, "can't begin the export");
	x->rotates = segment_wanted(&x->options->rotate);
	x->out.framed = x->rotates || x->ops->format.directory;
	x->env.info = &x->index.info;
	x->env.options = x->options;
	x->env.out = &x->out;
	r = x->ops->open(&x->sink, &x->env, err);
	if (r < 0)
		return r;
	x->sink->ops = x->ops;
	segment_begin(&x->segment, &x->out);
	if (x->marks && mark_feed_see_tasks(x->marks, &x->index, &x->reader) < 0)
		return error_errno(err, -ENOMEM, "can't begin the export");
	r = give_all(x, more, err);
	if (r < 0)
		return r;
	summary_take_notes(x);
	r = ledger_close(&x->ledger, &x->index, exporter_late_loss, x->sink, err);
	if (r < 0)
		return r;
	if (summary_make(x, ret) < 0)
		return error_errno(err, -ENOMEM, "can't sum up the export");
	r = close_sink(x, ret, err);
	ret->bytes = x->out.bytes;
	if (r == 0 && summary_amend(x, ret) < 0)
		return error_errno(err, -ENOMEM, "can't sum up the export");
	return r;
}

int export_run(const struct sink_ops *ops, int stream_fd, int out_fd,
	       const struct export_options *options, struct export_result *ret, struct error *err)
{
	uint64_t began = now_ns(CLOCK_MONOTONIC), cpu_began = cpu_time_ns();
	_cleanup_error_ struct error unwanted = ERROR_INIT;
	_cleanup_(exporter_deinit) struct exporter x = {
		.options = options,
		.ops = ops,
	};
	int r;

	*ret = (struct export_result){ 0 };
	/* error_hint() returns the error's code, so an error must exist. */
	err = err ?: &unwanted;
	r = open_stream(&x, stream_fd, err);
	if (r >= 0) {
		int checked = prepare_segments(&x, err);

		r = checked < 0 ? checked : r;
	}
	if (r >= 0)
		r = run_sink(&x, out_fd, r, ret, err);
	measure(ret, began, cpu_began);
	if (r == -EFBIG)
		error_hint(err, "raise the limit of a file's size (ulimit -f), or write to another "
				"filesystem");
	return r;
}
