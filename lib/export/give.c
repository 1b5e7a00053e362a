/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Passes events from the merge, and marks between them, to the sink; cuts the output into segments.
 * Nothing is allocated per event.
 */
#include <string.h>

#include "base/io.h"
#include "export/exporter.h"
#include "marks/clock_map.h"
#include "print/funcgraph.h"

static int give_lost(struct exporter *x, const struct merge_item *item, struct error *err)
{
	ledger_loss(&x->ledger, item);
	x->after_loss = true;
	return x->ops->loss(x->sink, item->event.cpu, item->before_ts, item->after_ts, item->count,
			    err);
}

/* The recorder's mark is an ordinary print event; only its text identifies it. It occurs once. */
static bool give_is_own_mark(const struct exporter *x, const struct record *rec)
{
	const char *id = x->index.info.sync_id;

	return !x->own_events && *id && memmem(rec->data, rec->len, id, strlen(id));
}

/* Result that is written at the end of a segment; the account is added later. */
static struct export_result give_segment_result(const struct exporter *x)
{
	return (struct export_result){
		.warnings = x->index.warnings,
		.warning_count = x->index.warning_count,
		.incomplete = x->index.incomplete,
		.span_ns = exporter_segment_ns(x),
	};
}

static int give_cut(struct exporter *x, uint64_t ts, struct error *err)
{
	struct export_result result = give_segment_result(x);

	x->reopens = x->marks && x->ops->string_bound;
	x->reopen_ts = ts;
	return segment_cut(&x->segment, x->sink, &x->out, &x->ledger, &result, ts, err);
}

static int give_reopened(void *userdata, const struct mark *mark, struct error *err)
{
	const struct exporter *x = userdata;

	if (x->gate && !selection_has_mark(x->gate, mark, false))
		return 0;
	return x->ops->mark(x->sink, mark, err);
}

/* Readers of a JSON refuse an end without its begin. */
static int give_reopen(struct exporter *x, struct error *err)
{
	if (!x->reopens)
		return 0;
	x->reopens = false;
	return mark_feed_reopen(x->marks, x->have_mark ? &x->mark : NULL, x->reopen_ts,
				give_reopened, x, err);
}

/* Frames and metadata have no time. */
static int give_cut_at_mark(struct exporter *x, struct error *err)
{
	return give_cut(x, MAX(x->mark.ts, x->segment.first_ts), err);
}

/* A format that knows no polled files gets their values as counters. */
static int give_poll(struct exporter *x, struct error *err)
{
	struct poll_value v;
	struct poll_iter it;
	struct mark mark;
	int r = 0;

	if (x->ops->poll)
		return x->ops->poll(x->sink, x->mark.poll, err);
	poll_iter_init(&it, x->mark.poll);
	while (r == 0 && poll_next(&it, &v)) {
		r = poll_mark(x->mark.poll, &v, &x->poll_text, &mark);
		r = r < 0 ? error_errno(err, r, "can't write a counter")
			  : x->ops->mark(x->sink, &mark, err);
	}
	return r;
}

/* Once all marks before `ts` were read: the selection begins with the slices that are open. */
static void give_begin_marks(struct exporter *x, uint64_t ts)
{
	if (x->marks_began || !x->marks || ts < selection_from(x->gate))
		return;
	x->marks_began = true;
	x->reopens = x->ops->shows_state && selection_from(x->gate);
	x->reopen_ts = selection_from(x->gate);
}

static int give_mark(struct exporter *x, struct error *err)
{
	int r = unlikely(x->segment.full) ? give_cut_at_mark(x, err) : 0;

	if (unlikely(x->gate)) {
		give_begin_marks(x, x->mark.ts);
		if (!selection_has_mark(x->gate, &x->mark, x->ops->shows_state)) {
			mark_feed_leave_out(x->marks);
			return r;
		}
	}
	if (r == 0)
		r = give_reopen(x, err);
	if (r == 0)
		r = x->mark.phase == PHASE_POLLED ? give_poll(x, err)
						  : x->ops->mark(x->sink, &x->mark, err);
	return r;
}

int exporter_give_marks(struct exporter *x, uint64_t until, struct error *err)
{
	int r = give_reopen(x, err);

	if (r < 0)
		return r;
	while (x->have_mark && x->mark.ts < until) {
		r = give_mark(x, err);
		if (r == 0)
			r = mark_feed_next(x->marks, &x->mark, err);
		if (r < 0)
			return r;
		x->have_mark = r > 0;
	}
	if (unlikely(x->gate)) {
		give_begin_marks(x, until);
		r = give_reopen(x, err);
		if (r < 0)
			return r;
	}
	x->mark_ts = x->have_mark ? x->mark.ts : UINT64_MAX;
	return 0;
}

/* In a followed stream, marks can't wait for the end: consumed data is freed. */
static bool give_marks_last(const struct exporter *x)
{
	return x->ops->marks_last && !x->env.followed;
}

/* Passes frames and metadata at once; the first mark with a time becomes x->mark. */
static int give_first_marks(struct exporter *x, struct error *err)
{
	int r;

	if (!x->marks || x->have_mark)
		return 0;
	r = x->options->follow ? mark_feed_extend(x->marks, x->index.ripe, err) : 0;
	if (r == 0)
		r = mark_feed_next(x->marks, &x->mark, err);
	x->have_mark = r > 0;
	return r <= 0 || give_marks_last(x) ? MIN(r, 0) : exporter_give_marks(x, 1, err);
}

/* In a followed recording, a format may arrive late. */
static void give_learn_kind(struct exporter *x, struct event_kind *kind, uint16_t id)
{
	x->kinds_end = MAX(x->kinds_end, id + 1U);
	kind->desc = event_table_find(x->index.info.events, id);
	kind->special =
		kind->desc && (kind->desc == x->print || funcgraph_is(kind->desc, FUNCGRAPH_ENTRY));
}

static bool give_is_exit_of(const struct trace_event *exit, uint64_t func)
{
	uint64_t left;

	return funcgraph_is(exit->desc, FUNCGRAPH_EXIT) &&
	       funcgraph_read_func(exit->desc, &exit->rec, &left) && left == func;
}

/* After a function entry: the next event may be its exit. */
static int give_look_ahead(struct exporter *x, struct trace_event *ev, struct trace_event *next,
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
	if (next->pid == ev->pid && give_is_exit_of(next, func))
		ev->exit = next;
	return 0;
}

static _noinline_ int give_look_closer(struct exporter *x, struct trace_event *ev,
				       struct trace_event *next, struct error *err)
{
	if (ev->desc != x->print)
		return give_look_ahead(x, ev, next, err);
	x->own_events += give_is_own_mark(x, &ev->rec);
	return 0;
}

/* The kernel never writes such a record: it is damaged, although its sub-buffer is valid. */
static _noinline_ int give_too_short(struct exporter *x, const struct trace_event *ev,
				     struct error *err)
{
	x->too_short++;
	return give_lost(x,
			 &(struct merge_item){
				 .event.cpu = ev->cpu,
				 .after_ts = ev->rec.ts,
				 .count = UINT64_MAX,
				 .damaged = true,
			 },
			 err);
}

_hot_ _always_inline_ static inline int give_record(struct exporter *x, struct trace_event *ev,
						    struct error *err)
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
		give_learn_kind(x, kind, ev->id);
	kind->count++;
	ev->desc = kind->desc;
	ev->exit = NULL;

	if (unlikely(!c || c->row.cpu != ev->cpu))
		c = x->row = ledger_find(&x->ledger, ev->cpu);
	c->row.events++;
	c->row.last_ts = ts;
	if (unlikely(!x->first_ts))
		x->first_ts = ts;
	if (unlikely(ts < x->last_ts))
		x->late += x->env.followed;
	else
		x->last_ts = ts;
	if (unlikely(ts > x->mark_ts)) {
		r = exporter_give_marks(x, ts, err);
		if (r < 0)
			return r;
	}
	if (unlikely(kind->special)) {
		r = give_look_closer(x, ev, &next, err);
		if (r < 0)
			return r;
	}
	return x->ops->event(x->sink, ev, err);
}

/* Events between two readings of the clock, and time between two progress reports. */
#define PROGRESS_EVENTS 65536
#define PROGRESS_NS (200 * NSEC_PER_MSEC)

static void give_report_progress(struct exporter *x)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), size = x->reader.size + x->reader.elsewhere;

	if (!x->options->progress || !size || now - x->reported_ns < PROGRESS_NS)
		return;
	x->reported_ns = now;
	x->options->progress(x->options->userdata, (double)merge_progress(x->merge) / (double)size);
}

/*
 * On ENOSPC and the like. The output may be all that remains of a followed recording: close the
 * file where it is. For a complete stream, which is kept, report the error instead.
 */
static bool give_close_full(struct exporter *x, int r, const struct error *err)
{
	if (r != -EOVERFLOW || !x->env.followed)
		return false;
	x->full = x->index.incomplete = true;
	stream_index_warn(&x->index, "%s: what came later is missing", err->message);
	return true;
}

/*
 * Starts a new segment if the item belongs to the next one. A loss stays with the event after it.
 * The segment also gets the marks before the item; they may need segments of their own.
 */
static int give_cut_before(struct exporter *x, const struct merge_item *item, int kind,
			   struct error *err)
{
	uint64_t ts = kind == MERGE_RECORD ? item->event.rec.ts : item->after_ts;
	bool after_loss = x->after_loss;
	int r;

	x->after_loss = false;
	x->segment.first_ts = x->segment.first_ts ?: x->first_ts;
	if (after_loss || ts == UINT64_MAX || !segment_is_full(&x->segment, &x->out, x->sink, ts))
		return 0;
	x->segment.full = false;
	r = exporter_give_marks(x, ts, err);
	if (r < 0)
		return r;
	if (give_marks_last(x))
		x->mark_ts = UINT64_MAX;
	return give_cut(x, ts, err);
}

/* Passes what the format shows of the time before the selection. */
static _noinline_ int give_state(struct exporter *x, struct error *err)
{
	struct trace_event *ev;
	int r = 0;

	x->selection_began = true;
	if (!x->ops->shows_state)
		return 0;
	while (r == 0 && (ev = selection_take_state(x->selection))) {
		r = give_record(x, ev, err);
		/* It counted as left out before. */
		if (x->row)
			x->row->row.left_out--;
	}
	/* They are no part of its span. */
	x->first_ts = x->last_ts = 0;
	return r;
}

static int give_leave_out(struct exporter *x, const struct trace_event *ev, struct error *err)
{
	struct ledger_cpu *c = ledger_find(&x->ledger, ev->cpu);
	int r = 0;

	if (c)
		c->row.left_out++;
	if (x->ops->shows_state && ev->rec.ts < selection_from(x->gate))
		r = selection_keep_state(x->gate, ev);
	return r < 0 ? error_errno(err, r, "can't choose a part of the recording") : 0;
}

/*
 * Whether the item is in the selection. 1: yes; 0: no; -ENODATA: nothing that follows is, and no
 * CPU is in a gap whose begin may be.
 */
static _noinline_ int give_select(struct exporter *x, struct merge_item *item, int kind,
				  struct error *err)
{
	struct trace_event *ev = &item->event;
	uint64_t ts = kind == MERGE_RECORD ? ev->rec.ts : item->after_ts;
	int r = 0;

	if (unlikely(!x->selection_began) && ts >= selection_from(x->gate))
		r = give_state(x, err);
	if (r < 0)
		return r;
	if (kind == MERGE_LOSS) {
		if (selection_has_loss(x->gate, item))
			return 1;
		ledger_pass(&x->ledger, item);
		selection_lose_state(x->gate, ev->cpu);
		return 0;
	}
	if (ts >= selection_to(x->gate) && !x->env.gaps->open)
		return -ENODATA;
	if (unlikely(ev->rec.len < x->head.least))
		return selection_has_time(x->gate, ts);
	event_head_read(&x->head, ev);
	if (selection_has_event(x->gate, ev))
		return 1;
	return give_leave_out(x, ev, err);
}

/* Passes the available events to the sink. 0: all; 1: the sink asked for a pause; or -errno. */
_hot_ static int give_some(void *userdata, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	struct exporter *x = userdata;
	struct merge_item item;
	int kind, r;

	while ((kind = merge_next(x->merge, &item, err)) > 0) {
		if (unlikely(x->gate)) {
			r = give_select(x, &item, kind, &why);
			if (r == -ENODATA)
				return 0;
			if (r < 0)
				return error_move(err, &why);
			if (r == 0)
				continue;
		}
		r = likely(!x->segment.watched) ? 0 : give_cut_before(x, &item, kind, &why);
		if (likely(r == 0))
			r = likely(kind == MERGE_RECORD) ? give_record(x, &item.event, &why)
							 : give_lost(x, &item, &why);
		if (unlikely(r < 0))
			return give_close_full(x, r, &why) ? 0 : error_move(err, &why);
		if (unlikely(++x->unreported == PROGRESS_EVENTS)) {
			x->unreported = 0;
			give_report_progress(x);
		}
		if (unlikely(x->loan.pause))
			return 1;
	}
	return kind;
}

/* The time of the last event, from each CPU's last chunk. 0: these have none, or are gone. */
static uint64_t give_last_event(const struct exporter *x)
{
	const struct ring_index *ring = &x->index.rings[BUFFER_MAIN];
	_cleanup_(ring_index_deinit) struct ring_index last = { .hole = ring->hole };
	_cleanup_(merge_freep) struct merge *m = NULL;
	struct merge_item item;
	uint64_t ts = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ring->count; i++) {
		const struct chunk_list *l = &ring->cpus[i].list;
		const struct chunk_ref *ref = l->count ? chunk_list_get(l, l->count - 1) : NULL;

		if (ref)
			r = ring_index_add(&last, ring->cpus[i].cpu, ring->cpus[i].buffer, ref);
	}
	if (r == 0)
		r = merge_new(&m, &x->index.info.layout, &last, &x->reader, NULL);
	while (r >= 0 && (r = merge_next(m, &item, NULL)) > 0)
		if (r == MERGE_RECORD)
			ts = MAX(ts, item.event.rec.ts);
	return ts;
}

/*
 * Once the stream tells it, which a followed one does before its last events are ripe. A quiet time
 * at the end is no rest to write.
 */
static uint64_t give_find_end(const struct exporter *x)
{
	uint64_t bound, end = clock_map_end(&x->index.info, &bound);

	if (end)
		end = MIN(end, give_last_event(x) ?: end);
	return x->gate ? MIN(end, selection_to(x->gate)) : end;
}

int exporter_give_ripe(struct exporter *x, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	int r;

	if (x->rotates && !x->segment.end_ts)
		x->segment.end_ts = give_find_end(x);
	r = ledger_extend(&x->ledger, &x->index);
	x->row = NULL;
	if (r < 0)
		return error_errno(err, r, "can't keep the account");
	r = merge_extend(x->merge, x->index.ripe, err);
	if (r == 0)
		r = give_first_marks(x, err);
	if (r == 0)
		r = x->ops->run ? x->ops->run(x->sink, give_some, x, err) : give_some(x, err);
	if (r == 0 && !x->full && x->options->follow && x->marks) {
		r = exporter_give_marks(x, UINT64_MAX, &why);
		if (r < 0)
			return give_close_full(x, r, &why) ? 0 : error_move(err, &why);
	}
	return r;
}
