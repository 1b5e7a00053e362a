/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/slice_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"

static void slice_thread_deinit(void *data)
{
	struct slice_thread *t = data;

	free(t->slices);
	free(t->changes);
	free(t->done);
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

static const struct slice_change *slice_change_at(const struct slice_thread *t, uint32_t i)
{
	return &t->changes[(t->change_next + i) % t->change_count];
}

static struct slice_times slice_change_until(const struct slice_change *c, uint64_t ts)
{
	struct slice_times times = c->times;

	if (c->state == SCHED_RUNS || c->state == SCHED_UNKNOWN)
		times.ran += ts - MIN(ts, c->ts);
	else if (c->state == SCHED_WAITS)
		times.waited += ts - MIN(ts, c->ts);
	return times;
}

/* The span that goes on at ts has not ended: the scheduler knows it. */
static struct slice_times slice_times_now(const struct slices *s, const struct slice_thread *t,
					  uint64_t ts)
{
	const struct sched_task *task = t->runs ? NULL : scheduler_find(s->env->scheduler, t->tid);
	struct slice_change now = t->last;

	if (task && now.ts && task->since > now.ts && task->since <= ts &&
	    task->state != SCHED_UNKNOWN) {
		now.times = slice_change_until(&now, task->since);
		now.ts = task->since;
	}
	if (task && now.ts && task->since == now.ts && task->state != SCHED_UNKNOWN)
		now.state = task->state;
	return slice_change_until(&now, ts);
}

/* False: that is forgotten. */
static bool slice_times_at(const struct slices *s, const struct slice_thread *t, uint64_t ts,
			   struct slice_times *ret)
{
	static const struct slice_change first = { 0 };
	uint32_t after;

	if (ts >= t->last.ts) {
		*ret = slice_times_now(s, t, ts);
		return true;
	}
	after = lower_bound(i, t->change_count, slice_change_at(t, i)->ts <= ts);
	if (!after && t->forgot)
		return false;
	*ret = slice_change_until(after ? slice_change_at(t, after - 1) : &first, ts);
	return true;
}

/* Keeps a change. Without room for more, the oldest one goes. */
static void slice_thread_remember(struct slices *s, struct slice_thread *t,
				  const struct slice_change *c)
{
	uint32_t cap = MAX(t->change_cap * 2, 2U), old = t->change_cap;

	if (t->change_count == old && cap <= SLICE_CHANGES_MAX &&
	    cap - old <= CHANGES_MAX - s->change_room &&
	    vec_reserve_exact(t->changes, old, cap - old) == 0) {
		s->change_room += cap - old;
		t->change_cap = cap;
	}
	if (t->change_count < t->change_cap) {
		t->changes[t->change_count++] = *c;
		return;
	}
	t->forgot = true;
	if (!t->change_cap)
		return;
	t->changes[t->change_next] = *c;
	t->change_next = (t->change_next + 1) % t->change_count;
}

static void slice_thread_change(struct slices *s, struct slice_thread *t, uint64_t ts,
				enum sched_state state)
{
	struct slice_change next = { ts, slice_change_until(&t->last, ts), state };

	if (ts != t->last.ts && t->last.ts)
		slice_thread_remember(s, t, &t->last);
	t->last = next;
}

int slice_row_add(struct slice_row *row, uint64_t from, uint64_t to, bool cut)
{
	uint64_t ns = to - MIN(from, to);

	row->cut += cut;
	if (cut)
		return 0;
	return histogram_add_at(&row->time, ns, to, &row->max_at);
}

/* Keeps a slice that ended, in case that one around it comes later. */
static void slice_thread_done(struct slices *s, struct slice_thread *t, uint64_t from, uint64_t ns)
{
	uint32_t cap = MAX(t->done_cap * 2, 2U), old = t->done_cap, gone;

	if (t->done_count == old && cap <= SLICE_DONE_MAX && cap - old <= DONE_MAX - s->done_room &&
	    vec_reserve_exact(t->done, old, cap - old) == 0) {
		s->done_room += cap - old;
		t->done_cap = cap;
	}
	if (t->done_count == t->done_cap) {
		gone = (t->done_count + 1) / 2;
		t->done_from = gone ? t->done[gone - 1].from : from;
		if (!gone)
			return;
		t->done_count -= gone;
		memmove(t->done, t->done + gone, t->done_count * sizeof(*t->done));
	}
	t->done[t->done_count++] = (struct slice_done){ from, ns };
}

/*
 * Returns the time of slices that ended already, but are directly within a slice that is put at
 * index `at`, and takes it from the slice around that.
 */
static uint64_t slice_thread_adopt(struct slice_thread *t, uint32_t at, uint64_t from)
{
	const uint64_t until = at < t->depth ? t->slices[at].from : UINT64_MAX;
	uint32_t first = lower_bound(i, t->done_count, t->done[i].from < from);
	uint32_t last = lower_bound(i, t->done_count, t->done[i].from < until);
	uint64_t ns = 0;

	if (first == last)
		return 0;
	for (uint32_t i = first; i < last; i++)
		ns += t->done[i].ns;
	memmove(t->done + first, t->done + last, (t->done_count - last) * sizeof(*t->done));
	t->done_count -= last - first;
	if (at)
		t->slices[at - 1].within -= MIN(t->slices[at - 1].within, ns);
	return ns;
}

/* The index for a new slice. If its end is known, it may come after slices within it that go on. */
static uint32_t slice_thread_place(const struct slice_thread *t, uint64_t from, uint64_t end)
{
	uint32_t at = t->depth;

	while (end && at && t->slices[at - 1].end &&
	       (t->slices[at - 1].from > from ||
		(t->slices[at - 1].from == from && t->slices[at - 1].end < end)))
		at--;
	return at;
}

/* The innermost slice ends. */
static int slice_thread_pop(struct slices *s, struct slice_thread *t, uint64_t ts)
{
	const struct slice *slice = &t->slices[--t->depth];
	struct slice_row *row = slice->row;
	uint64_t ns = ts - MIN(slice->from, ts), ran, waited;
	struct slice_times times;
	bool cut = !report_is_whole(s->env, slice->mark) || slice->cuts != t->cuts ||
		   slice->is_late || !slice_times_at(s, t, ts, &times);

	if (t->depth)
		t->slices[t->depth - 1].within += ns;
	/* Slices within this one are in its time. */
	while (t->done_count && t->done[t->done_count - 1].from >= slice->from)
		t->done_count--;
	slice_thread_done(s, t, slice->from, ns);
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

/* Ends slices whose end is not after ts. */
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

/* A slice that comes late may have begun before a loss. */
static void slices_see_losses(struct slices *s)
{
	if (s->losses != s->env->losses || s->env->losses_open)
		s->clean_from = s->env->ts;
	s->losses = s->env->losses;
}

/*
 * A thread that makes a mark runs. If a loss took its switch in, the scheduler reports that as a
 * cut span only later. It must not cut this slice, which began after the loss. What was not
 * recorded is no loss: its spans are cut for good.
 */
static void slice_thread_resume(struct slices *s, struct slice_thread *t, uint64_t ts)
{
	const struct sched_task *task = scheduler_find(s->env->scheduler, t->tid);

	if (!s->has_sched || scheduler_is_partial(s->env->scheduler) || t->runs ||
	    (task && task->state == SCHED_RUNS))
		return;
	if (task && task->state != SCHED_UNKNOWN && !t->unsure &&
	    report_is_whole(s->env, task->mark))
		return;
	t->runs = true;
	slice_thread_change(s, t, ts, SCHED_RUNS);
}

/* Makes room for one more slice. False: there is none. */
static bool slice_thread_reach(struct slices *s, struct slice_thread *t)
{
	uint32_t cap = MAX(t->cap * 2, 1U), old = t->cap;

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
	struct slice *slice;
	uint64_t within;
	uint32_t at;

	slices_see_losses(s);
	if (!end)
		slice_thread_resume(s, t, ts);
	if (!slice_thread_reach(s, t)) {
		row->cut++;
		return;
	}
	at = slice_thread_place(t, ts, end);
	within = end ? slice_thread_adopt(t, at, ts) : 0;
	slice = &t->slices[at];
	memmove(slice + 1, slice, (t->depth++ - at) * sizeof(*slice));
	*slice = (struct slice){
		.row = row,
		.from = ts,
		.end = end,
		.within = within,
		.mark = report_mark(s->env),
		.cuts = t->cuts,
	};
	slice->is_late = !slice_times_at(s, t, ts, &slice->at_begin) ||
			 (end && (ts < s->clean_from || ts <= t->done_from));
}

int slices_end(struct slices *s, struct slice_thread *t, uint64_t ts)
{
	uint32_t above = t->depth;
	struct slice slice;

	while (above && t->slices[above - 1].end)
		above--;
	if (!above)
		return -ENOENT;
	/* Slices that began later and whose end is still to come go on. */
	slice = t->slices[above - 1];
	memmove(&t->slices[above - 1], &t->slices[above], (t->depth - above) * sizeof(slice));
	t->slices[t->depth - 1] = slice;
	return slice_thread_pop(s, t, ts);
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

/* *ret NULL: there are too many threads. Spans come before it is known whether there are slices. */
static int slices_see(struct slices *s, const struct sched_span *span, struct slice_thread **ret)
{
	struct slice_thread *t =
		rows_get(&s->threads, (struct row_key){ (uint32_t)span->task->tid, 0 });

	if (!t)
		return -ENOMEM;
	slices_see_losses(s);
	*ret = t == s->threads.rest ? NULL : t;
	t->tid = span->task->tid;
	t->cuts += span->state == SPAN_CUT && !t->runs;
	return 0;
}

/* The thread has ended: no slice of it comes late any more. */
static void slice_thread_forget(struct slices *s, struct slice_thread *t, uint64_t ts)
{
	s->change_room -= t->change_cap;
	s->done_room -= t->done_cap;
	free(t->changes);
	free(t->done);
	t->changes = NULL;
	t->done = NULL;
	t->change_count = t->change_next = t->change_cap = t->done_count = t->done_cap = 0;
	t->forgot = true;
	t->done_from = ts;
	if (t->depth)
		return;
	s->room -= t->cap;
	free(t->slices);
	t->slices = NULL;
	t->cap = 0;
}

int slices_ran(struct slices *s, const struct sched_span *span)
{
	struct slice_thread *t;
	int r;

	/* This run was before a loss: the thread has had events since. */
	if (span->late && span->task->state != SCHED_UNKNOWN)
		return 0;
	r = slices_see(s, span, &t);
	if (r < 0 || !t || (span->late && t->runs))
		return r;
	t->runs = t->unsure = false;
	if (span->state == SPAN_WHOLE && span->from > t->last.ts)
		slice_thread_change(s, t, span->from, SCHED_RUNS);
	slice_thread_change(s, t, span->to, SCHED_SLEEPS);
	r = slice_thread_settle(s, t, span->to);
	if (r == 0 && span->state != SPAN_OPEN && sched_task_dies(span->task))
		slice_thread_forget(s, t, span->to);
	return r;
}

int slices_waited(struct slices *s, const struct sched_span *span)
{
	struct slice_thread *t;
	int r = slices_see(s, span, &t);

	if (r < 0 || !t)
		return r;
	t->unsure = span->state != SPAN_WHOLE;
	if (span->state == SPAN_WHOLE && span->from >= t->last.ts)
		slice_thread_change(s, t, span->from, SCHED_WAITS);
	slice_thread_change(s, t, span->to, SCHED_RUNS);
	return slice_thread_settle(s, t, span->to);
}

int slices_slept(struct slices *s, const struct sched_span *span)
{
	struct slice_thread *t =
		rows_get(&s->threads, (struct row_key){ (uint32_t)span->task->tid, 0 });

	if (!t)
		return -ENOMEM;
	t->unsure = span->state != SPAN_WHOLE;
	return 0;
}
