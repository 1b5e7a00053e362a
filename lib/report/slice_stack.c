/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/slice_stack.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

static void slice_thread_deinit(void *data)
{
	struct slice_thread *t = data;

	free(t->slices);
}

void slices_init(struct slices *s, struct report_env *env)
{
	*s = (struct slices){ .env = env };
	rows_init(&s->threads, sizeof(struct slice_thread), slice_thread_deinit);
}

void slices_deinit(struct slices *s)
{
	rows_deinit(&s->threads);
}

int slices_listen(struct slices *s, const struct sched_listener *listener)
{
	int r = scheduler_listen(s->env->scheduler, listener);

	s->has_sched = r >= 0;
	return r == -ENODATA ? 0 : MIN(r, 0);
}

/* The thread's times at ts, with those of the span that goes on. */
static struct slice_times slice_times_at(const struct slices *s, const struct slice_thread *t,
					 uint64_t ts)
{
	const struct sched_task *task = scheduler_find(s->env->scheduler, t->tid);
	struct slice_times times = t->times;

	if (t->runs_since)
		times.ran += ts - MIN(ts, t->runs_since);
	else if (task && task->state == SCHED_RUNS)
		times.ran += ts - MIN(ts, task->since);
	else if (task && task->state == SCHED_WAITS)
		times.waited += ts - MIN(ts, task->since);
	return times;
}

int slice_row_add(struct slice_row *row, uint64_t from, uint64_t to, bool cut)
{
	uint64_t ns = to - MIN(from, to);

	row->cut += cut;
	if (cut)
		return 0;
	if (!row->time.count || ns > row->time.max)
		row->max_at = to;
	return histogram_add(&row->time, ns);
}

/* The innermost slice ends. */
static int slice_thread_pop(struct slices *s, struct slice_thread *t, uint64_t ts)
{
	const struct slice *slice = &t->slices[--t->depth];
	struct slice_row *row = slice->row;
	struct slice_times times = slice_times_at(s, t, ts);
	uint64_t ns = ts - MIN(slice->from, ts), ran, waited;
	bool cut = !report_is_whole(s->env, slice->mark) || slice->cuts != t->cuts;

	/* A slice around it ends later, so what the scheduler did until then is known no more. */
	cut |= slice->end && slice->end < t->now;
	if (t->depth)
		t->slices[t->depth - 1].within += ns;
	if (!cut) {
		ran = MIN(times.ran - slice->at_begin.ran, ns);
		waited = MIN(times.waited - slice->at_begin.waited, ns - ran);
		row->self += ns - MIN(slice->within, ns);
		row->running += ran;
		row->runnable += waited;
		row->blocked += ns - ran - waited;
	}
	return slice_row_add(row, slice->from, ts, cut);
}

/* Ends slices whose end is not after ts. Called before the thread's times change. */
static int slice_thread_settle(struct slices *s, struct slice_thread *t, uint64_t ts)
{
	int r = 0;

	while (r == 0 && t->depth && t->slices[t->depth - 1].end &&
	       t->slices[t->depth - 1].end <= ts)
		r = slice_thread_pop(s, t, t->slices[t->depth - 1].end);
	return r;
}

int slices_thread(struct slices *s, int32_t tid, uint64_t ts, struct slice_thread **ret)
{
	struct slice_thread *t = rows_get(&s->threads, (struct row_key){ (uint32_t)tid, 0 });

	if (!t)
		return -ENOMEM;
	*ret = NULL;
	if (t == s->threads.rest)
		return 0;
	t->tid = tid;
	*ret = t;
	return slice_thread_settle(s, t, ts);
}

/* Makes room for one more slice. False: there is none. */
static bool slice_thread_reach(struct slices *s, struct slice_thread *t)
{
	uint32_t cap = MAX(t->cap * 2, 4U), old = t->cap;

	if (t->depth < t->cap)
		return true;
	if (t->depth >= SLICE_DEPTH_MAX || cap - old > SLICES_MAX - s->room ||
	    vec_reserve_exact(t->slices, t->cap, cap - old) < 0)
		return false;
	s->room += cap - old;
	t->cap = cap;
	return true;
}

void slices_begin(struct slices *s, struct slice_thread *t, struct slice_row *row, uint64_t ts,
		  uint64_t end)
{
	const struct sched_task *task = scheduler_find(s->env->scheduler, t->tid);

	if (!slice_thread_reach(s, t)) {
		row->cut++;
		return;
	}
	if (!t->runs_since && (!task || task->state == SCHED_UNKNOWN))
		t->runs_since = ts;
	t->slices[t->depth++] = (struct slice){
		.row = row,
		.from = ts,
		.end = end,
		.mark = report_mark(s->env),
		.cuts = t->cuts,
		.at_begin = slice_times_at(s, t, ts),
	};
}

int slices_end(struct slices *s, struct slice_thread *t, uint64_t ts)
{
	return t->depth ? slice_thread_pop(s, t, ts) : -ENOENT;
}

int slices_close(struct slices *s, uint64_t ts)
{
	int r = 0;

	for (uint32_t i = 0; i < s->threads.count && r == 0; i++) {
		struct slice_thread *t = rows_at(&s->threads, i);

		r = slice_thread_settle(s, t, MAX(ts, s->env->ts));
		while (t->depth) {
			const struct slice *slice = &t->slices[--t->depth];

			if (report_is_whole(s->env, slice->mark))
				slice->row->open++;
			else
				slice->row->cut++;
		}
	}
	return r;
}

/* *ret NULL: no slice is known of that thread. */
static int slices_see(struct slices *s, const struct sched_span *span, struct slice_thread **ret)
{
	struct slice_thread *t =
		rows_find(&s->threads, (struct row_key){ (uint32_t)span->task->tid, 0 });
	int r = t ? slice_thread_settle(s, t, span->to) : 0;

	*ret = t;
	if (t) {
		t->now = span->to;
		t->cuts += span->state == SPAN_CUT;
	}
	return r;
}

int slices_ran(struct slices *s, const struct sched_span *span)
{
	struct slice_thread *t;
	int r = slices_see(s, span, &t);

	if (!t)
		return r;
	if (t->runs_since)
		t->times.ran += span->to - MIN(t->runs_since, span->to);
	else if (span->state == SPAN_WHOLE)
		t->times.ran += span->to - span->from;
	t->runs_since = 0;
	return r;
}

int slices_waited(struct slices *s, const struct sched_span *span)
{
	struct slice_thread *t;
	int r = slices_see(s, span, &t);

	if (t && span->state == SPAN_WHOLE)
		t->times.waited += span->to - span->from;
	return r;
}

int slices_slept(struct slices *s, const struct sched_span *span)
{
	struct slice_thread *t;

	return slices_see(s, span, &t);
}
