/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An export from begin to end: opens and follows the stream, opens the sink, lets give.c pass the
 * events to it, and closes both.
 */
#include "export/export.h"

#include <sys/resource.h>

#include "base/io.h"
#include "export/exporter.h"
#include "export/sink.h"
#include "marks/crash_log.h"
#include "trace/task_scan.h"

static void exporter_deinit(struct exporter *x)
{
	if (x->sink)
		x->ops->free(x->sink);
	mark_feed_free(x->marks);
	selection_free(x->selection);
	buf_deinit(&x->poll_text);
	output_deinit(&x->out);
	merge_free(x->merge);
	task_feed_free(x->tasks);
	ledger_deinit(&x->ledger);
	free(x->kinds);
	stream_index_deinit(&x->index);
}

static void exporter_fill_names(void *userdata)
{
	struct exporter *x = userdata;

	/* Not an error: without names, lines have "<...>", as the kernel's do. */
	if (task_scan_names(&x->index, &x->reader, NULL) < 0)
		stream_index_warn(&x->index, "some tasks have no name: the trace could not be "
					     "searched for them");
}

/* A selection by tasks looks up all of them, and that must not change a table in use. */
static void exporter_expect_names(struct exporter *x)
{
	if (selection_wants_tasks(&x->options->selection))
		exporter_fill_names(x);
	else
		task_table_set_filler(x->index.info.tasks, exporter_fill_names, x);
}

static int exporter_open_marks(struct exporter *x, struct error *err)
{
	const struct export_options *o = x->options;
	int r;

	if (!x->ops->mark) {
		x->index.incomplete |= o->merge_count + o->profile_count > 0;
		return 0;
	}
	if (!o->merge_count && !o->profile_count && !o->arrows && !x->index.marks.count &&
	    !x->index.polls.count && !sample_reader_wanted(&x->index) && !o->follow &&
	    !x->index.info.last_boot)
		return 0;
	r = mark_feed_new(&x->marks, o, &x->ops->format, &x->index, &x->reader, err);
	x->env.marks = x->marks;
	return r;
}

/* End of the stream range that is no longer needed; it starts after the stream's head. */
static uint64_t exporter_done_until(const struct exporter *x)
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
static int exporter_load_more(struct exporter *x, struct error *err)
{
	const struct export_follow *follow = x->options->follow;
	int r;

	if (!follow)
		return stream_index_finish(&x->index, err);
	for (;;) {
		r = stream_index_next(&x->index, err);
		if (r > 0 && !x->data_from) {
			x->data_from = x->index.last_flush;
			/* In a streamed recording the first FLUSH ends the head: no events yet. */
			if (!x->options->skip_from && !x->index.rings[BUFFER_MAIN].count)
				continue;
		}
		if (r != 0)
			return r;
		if (x->index.ended || x->no_more)
			return stream_index_finish(&x->index, err);
		r = follow->wait(follow->userdata, x->data_from, exporter_done_until(x));
		if (r < 0)
			return error_errno(err, r, "can't follow the recording");
		x->no_more = r == 0;
		r = stream_reader_refresh(&x->reader, err);
		if (r < 0)
			return r;
	}
}

/* 1: the stream is still being written; 0: it is complete. */
static int exporter_open_stream(struct exporter *x, int fd, struct error *err)
{
	const struct index_options o = { .raw_addresses = x->options->raw_addresses,
					 .trace_options = x->options->trace_options,
					 .part = x->options->part,
					 .skip_from = x->options->skip_from,
					 .host = x->options->host };
	int r, more;

	r = stream_reader_init(&x->reader, fd, err);
	x->reader.pages_fd = x->options->pages_fd;
	if (r == 0)
		r = stream_index_open(&x->index, &x->reader, &o, err);
	if (r < 0)
		return r;
	more = exporter_load_more(x, err);
	if (more < 0)
		return more;
	x->index.info.host = x->options->numbers;
	x->env.followed = more;
	r = task_feed_new(&x->tasks, &x->index, &x->reader, err);
	if (r == 0)
		r = merge_new(&x->merge, &x->index.info.layout, &x->index.rings[BUFFER_MAIN],
			      &x->reader, err);
	if (r < 0)
		return r;
	/* A followed stream can't be searched again: its consumed part was freed. */
	if (!x->options->follow && task_scan_may_name(&x->index))
		exporter_expect_names(x);
	merge_lend(x->merge, &x->loan);
	x->env.gaps = merge_gaps(x->merge);
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
	r = exporter_open_marks(x, err);
	return r < 0 ? r : more;
}

static int exporter_copy_stream(struct exporter *x, bool last, struct error *err)
{
	return x->ops->copy ? x->ops->copy(x->sink, &x->index, last, err) : 0;
}

/* In a followed recording: flushes what is there to the output. */
static int exporter_hand_out(struct exporter *x, struct error *err)
{
	int r = x->ops->sync ? x->ops->sync(x->sink, err) : 0;

	if (r == 0)
		r = exporter_copy_stream(x, false, err);
	if (r < 0)
		return r;
	r = output_sync(&x->out);
	if (r < 0)
		return error_errno(err, r, "can't write the output");
	merge_forget(x->merge, &x->index.rings[BUFFER_MAIN]);
	for (size_t i = 0; i < x->index.samples.count; i++)
		chunk_list_forget(&x->index.samples.cpus[i].list, SIZE_MAX);
	if (!x->marks) {
		mark_ring_list_forget(&x->index.marks);
		chunk_list_forget(&x->index.polls, SIZE_MAX);
	}
	return 0;
}

/* The marks that are left; between them, that of a crash at the last event. */
static int exporter_give_last_marks(struct exporter *x, struct error *err)
{
	struct mark crash;
	int r;

	if (!x->index.info.last_boot || !x->ops->mark || !x->first_ts)
		return exporter_give_marks(x, UINT64_MAX, err);
	r = exporter_give_marks(x, x->last_ts + 1, err);
	crash_mark(&crash, x->last_ts);
	if (r == 0 && (!x->gate || selection_has_mark(x->gate, &crash, false)))
		r = x->ops->mark(x->sink, &crash, err);
	return r < 0 ? r : exporter_give_marks(x, UINT64_MAX, err);
}

/* more: the stream is still being written. */
static int exporter_give_all(struct exporter *x, int more, struct error *err)
{
	int r;

	x->mark_ts = UINT64_MAX;
	for (;;) {
		r = exporter_give_ripe(x, err);
		if (r == 0 && (!more || x->full))
			return x->full ? 0 : exporter_give_last_marks(x, err);
		if (r < 0)
			return r;
		r = exporter_hand_out(x, err);
		if (r < 0)
			return r;
		more = exporter_load_more(x, err);
		if (more < 0)
			return more;
		r = task_feed_advance(x->tasks, err);
		if (r < 0)
			return r;
	}
}

static uint64_t exporter_cpu_ns(void)
{
	return now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void exporter_measure(struct export_result *ret, uint64_t began, uint64_t cpu_began)
{
	struct rusage usage;

	ret->export_ns = now_ns(CLOCK_MONOTONIC) - began;
	ret->cpu_ns = exporter_cpu_ns() - cpu_began;
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		ret->peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

static int exporter_end_copy(struct exporter *x, struct error *err)
{
	int r = exporter_copy_stream(x, true, err);

	if (r < 0)
		return r;
	r = output_flush(&x->out, true);
	return r < 0 ? error_errno(err, r, "can't write the stream") : 0;
}

static int exporter_close_sink(struct exporter *x, const struct export_result *ret,
			       struct error *err)
{
	struct export_result last = *ret;
	int r;

	if (x->rotates || x->out.segment_count) {
		last.span_ns = exporter_segment_ns(x);
		return segment_close(x->sink, &x->out, &x->ledger, &last, err);
	}
	r = x->ops->close(x->sink, ret, err);
	if (r == 0 && x->ops->format.directory) {
		r = output_cut(&x->out, true);
		return r < 0 ? error_errno(err, r, "can't write the output") : 0;
	}
	return r == 0 && x->ops->copy ? exporter_end_copy(x, err) : r;
}

static int exporter_prepare_segments(struct exporter *x, struct error *err)
{
	const struct export_options *o = x->options;

	x->rotates = segment_wanted(&o->rotate);
	/* Or segments one behind the other, if one is not enough. */
	if (x->rotates || (o->segments && x->ops->string_bound && !o->profile_count))
		x->env.segment = &x->segment;
	if (!x->rotates)
		return 0;
	x->segment.limit = o->rotate;
	return segment_check(x->ops, x->index.info.header->trace_clock, &o->rotate, err);
}

/* Refuses what the format's properties exclude, before its sink is opened. */
static int exporter_check_format(const struct exporter *x, int out_fd, struct error *err)
{
	const struct export_format *format = &x->ops->format;
	int r = export_format_check_clock(format, x->index.info.header->trace_clock, err);

	if (r < 0)
		return r;
	if (x->env.followed && format->at_end) {
		error_set(err, -EINVAL, "a .%s is written when the recording has ended",
			  format->name);
		return error_hint(err, "omit --stream, or write .traced and convert it");
	}
	return export_format_check_file(format, &x->options->perfetto, out_fd, err);
}

static int exporter_late_loss(void *sink, uint32_t cpu, uint64_t last_ts, uint64_t count,
			      struct error *err)
{
	struct sink *s = sink;

	return s->ops->loss(s, cpu, last_ts, UINT64_MAX, count, err);
}

/* The part of the stream that is missing may have what the format lacks. */
static int exporter_explain_open(const struct exporter *x, int r, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;

	if (!err || r != -ENODATA || !x->index.incomplete)
		return r;
	/* Its hint says what to record. */
	error_move(&why, err);
	return error_set(err, r, "the stream is incomplete: %s", why.message ?: "no events");
}

static int exporter_run_sink(struct exporter *x, int out_fd, int more, struct export_result *ret,
			     struct error *err)
{
	int r;

	r = task_feed_advance(x->tasks, err);
	if (r < 0)
		return r;
	r = exporter_open_selection(x, err);
	if (r < 0)
		return r;
	if (output_init(&x->out, out_fd, x->ops->gzip) < 0)
		return error_errno(err, -ENOMEM, "can't begin the export");
	x->out.framed = x->rotates || x->ops->format.directory;
	x->env.info = &x->index.info;
	x->env.options = x->options;
	x->env.out = &x->out;
	r = x->ops->open(&x->sink, &x->env, err);
	if (r < 0)
		return exporter_explain_open(x, r, err);
	x->sink->ops = x->ops;
	segment_begin(&x->segment, &x->out);
	if (x->marks && mark_feed_see_tasks(x->marks, &x->index, &x->reader) < 0)
		return error_errno(err, -ENOMEM, "can't begin the export");
	r = exporter_give_all(x, more, err);
	if (r == 0 && x->gate)
		r = exporter_explain_nothing(x, err);
	if (r < 0)
		return r;
	summary_take_notes(x);
	r = ledger_close(&x->ledger, &x->index, exporter_late_loss, x->sink, err);
	if (r < 0)
		return r;
	if (summary_make(x, ret) < 0)
		return error_errno(err, -ENOMEM, "can't sum up the export");
	r = exporter_close_sink(x, ret, err);
	ret->bytes = x->out.bytes;
	ret->segment_count = x->out.segment_count;
	ret->segment_ends = TAKE_PTR(x->out.segment_ends);
	if (r == 0 && summary_amend(x, ret) < 0)
		return error_errno(err, -ENOMEM, "can't sum up the export");
	return r;
}

int export_run(const struct sink_ops *ops, int stream_fd, int out_fd,
	       const struct export_options *options, struct export_result *ret, struct error *err)
{
	uint64_t began = now_ns(CLOCK_MONOTONIC), cpu_began = exporter_cpu_ns();
	_cleanup_error_ struct error unwanted = ERROR_INIT;
	_cleanup_(exporter_deinit) struct exporter x = {
		.options = options,
		.ops = ops,
	};
	int r;

	*ret = (struct export_result){ 0 };
	/* error_hint() returns the error's code, so an error must exist. */
	err = err ?: &unwanted;
	r = exporter_open_stream(&x, stream_fd, err);
	if (r >= 0) {
		int checked = exporter_prepare_segments(&x, err);

		if (checked == 0)
			checked = exporter_check_format(&x, out_fd, err);
		r = checked < 0 ? checked : r;
	}
	if (r >= 0)
		r = exporter_run_sink(&x, out_fd, r, ret, err);
	exporter_measure(ret, began, cpu_began);
	if (r == -EFBIG)
		error_hint(err, "raise the limit of a file's size (ulimit -f), or write to another "
				"filesystem");
	return r;
}
