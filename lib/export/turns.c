/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Renders events on several CPUs; the output is the same, byte for byte, as with one.
 *
 * The problem. Rendering is three quarters of an export to text or JSON, and the text of one event
 * does not depend on another's. But the events come out of one merge, in time order, and the output
 * is one sequence. Fetching is a fifth to a quarter of the work and can't be split.
 *
 * The scheme. A thread takes the turn, which is the right to fetch from the merge, to use the sink
 * and to look up tasks. It fills a batch with references to records (416 KiB of them), passes the
 * turn on and renders its batch while the next thread fetches. It reads the records where the merge
 * has just read them: in the cache of the same CPU.
 *
 *      thread 1   fetch 0 | render 0 ........ | write 0 | fetch 3 | render 3 ...
 *      thread 2           | fetch 1 | render 1 ............... | write 1 2 | ...
 *      thread 3                     | fetch 2 | render 2 . | (done, waits) ...
 *
 * Batches are numbered in the order of the turns. They are in r->ring:
 *
 *      written            filled
 *         |  5    6    7    |
 *         |rend done  rend  |        5 is next to be written; 6 waits for it
 *
 * The thread that finishes the oldest batch writes it, and all finished ones behind it.
 *
 * Invariants.
 * - At most one thread holds the turn (held) and at most one writes (writing).
 * - Output leaves in the order of the numbers. written <= filled <= written + RING.
 * - r->lock protects numbers, ring, weight, failure and the lanes' idle batches. It is not held
 *   while a thread fetches, renders or writes.
 * - r->filling is the batch of the thread that has the turn; NULL: events are rendered directly.
 * - The merge lends the records (trace/loan.h) and leaves their memory alone until the number of
 *   their batch is below loan->returned. If it needs all of them back, it calls loan->recall().
 * - The task table changes only in a turn and only after render_drain(): others read it.
 * - The first failure ends all turns; the threads are joined before render_run() returns.
 *
 * Results that depend on earlier events are computed within the turn and put into the batch as a
 * note (render_note) in place of the record; any thread can render a note.
 *
 * Tried. One thread that merges and hands references to rendering threads: only 1.4 to 1.6 times
 * as fast with two CPUs, since all records moved from one CPU's cache to another's. Batches of a
 * fixed number of events: no number suits all loads. Waiting for the turn without spinning:
 * sleeping and waking takes longer than most turns. Spinning for 100 us and more: no difference
 * to 30. Cutting the stream into pieces of time would need no turns, but each thread would have to
 * find the first event of every CPU in its piece.
 */
#include "export/turns.h"

#include <sched.h>

#include "base/io.h"

#define SPIN_NS 30000
#define STACK_SIZE (1U << 20)

/*
 * Writes all finished batches that are next in order, unless another thread is writing. Drops the
 * lock meanwhile.
 */
static void turns_write_done(struct render *r)
{
	if (r->writing)
		return;
	r->writing = true;
	while (r->written < r->filled && r->ring[r->written % RING]->done) {
		struct batch *b = r->ring[r->written % RING];
		int e = r->failure ?: b->result;

		pthread_mutex_unlock(&r->lock);
		if (e == 0 && b->out.len)
			e = output_take(r->out, &b->out);
		pthread_mutex_lock(&r->lock);
		r->failure = e;
		r->weight += b->weight;
		r->written++;
		batch_put(b);
		pthread_cond_broadcast(&r->left);
	}
	r->writing = false;
}

/* Appends b to the ring. Needs the lock. */
static void turns_number(struct render *r, struct batch *b)
{
	r->ring[r->filled++ % RING] = b;
}

/* Writes part of b's output once b is next in order. Drops the lock meanwhile. */
static void turns_write_part(struct render *r, struct batch *b)
{
	int e;

	while (r->writing || r->ring[r->written % RING] != b)
		pthread_cond_wait(&r->left, &r->lock);
	r->writing = true;
	e = r->failure;
	pthread_mutex_unlock(&r->lock);
	if (e == 0)
		e = output_take(r->out, &b->out);
	buf_clear(&b->out);
	pthread_mutex_lock(&r->lock);
	r->failure = e;
	r->writing = false;
}

/* Renders b and writes what is next in order. Drops the lock meanwhile. */
static void turns_finish_batch(struct render *r, struct batch *b)
{
	bool all;

	do {
		pthread_mutex_unlock(&r->lock);
		all = batch_render(b, &r->env);
		pthread_mutex_lock(&r->lock);
		if (unlikely(!all))
			turns_write_part(r, b);
	} while (unlikely(!all));
	b->done = true;
	turns_write_done(r);
}

/* Progress of the other threads, for the thread that has the turn. Needs the lock. */
static uint64_t turns_take_news(struct render *r)
{
	r->loan->lent = r->filled;
	r->loan->returned = r->written;
	return render_take_weight(r);
}

/* One turn: fetches a batch and numbers it. NULL: no events. Drops the lock meanwhile. */
static struct batch *turns_fetch(struct render *r, struct lane *l)
{
	struct batch *b;
	uint64_t weight;
	int e;

	__atomic_store_n(&r->held, true, __ATOMIC_RELAXED);
	r->filling = batch_take(&l->pool, r->env.room);
	weight = turns_take_news(r);
	r->loan->borrower = (unsigned)(l - r->lanes);
	r->loan->pause = false;
	pthread_mutex_unlock(&r->lock);
	e = render_report_weight(r, weight, &l->err);
	if (e == 0)
		e = r->give(r->userdata, &l->err);
	pthread_mutex_lock(&r->lock);
	b = r->filling;
	r->filling = NULL;
	if (b && b->count) {
		turns_number(r, b);
	} else if (b) {
		batch_put(b);
		b = NULL;
	}
	if (e <= 0) {
		r->gave = e;
		r->over = true;
		if (e < 0)
			error_move(&r->err, &l->err);
	}
	r->giver_cpu = sched_getcpu();
	__atomic_store_n(&r->held, false, __ATOMIC_RELAXED);
	pthread_cond_signal(&r->turn);
	return b;
}

/* Spins briefly: sleeping and waking take longer than most turns. Drops the lock meanwhile. */
static void turns_spin(struct render *r)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + SPIN_NS;

	pthread_mutex_unlock(&r->lock);
	do {
		for (unsigned i = 0; i < 64 && __atomic_load_n(&r->held, __ATOMIC_RELAXED); i++)
			thread_spin_pause();
	} while (__atomic_load_n(&r->held, __ATOMIC_RELAXED) && now_ns(CLOCK_MONOTONIC) < until);
	pthread_mutex_lock(&r->lock);
}

/*
 * Kernels that avoid idle CPUs wake a thread on its waker's CPU, and the two then share that CPU as
 * long as they wait for each other: move away. Drops the lock meanwhile.
 */
static void turns_sleep(struct render *r)
{
	int cpu;

	pthread_cond_wait(&r->turn, &r->lock);
	cpu = sched_getcpu();
	if (cpu < 0 || cpu != r->giver_cpu)
		return;
	pthread_mutex_unlock(&r->lock);
	thread_leave_cpu(cpu);
	pthread_mutex_lock(&r->lock);
}

/* Waits for l's turn. False: there are no more turns. Drops the lock meanwhile. */
static bool turns_await(struct render *r, const struct lane *l)
{
	while (!r->over && r->failure == 0) {
		if (!l->pool.idle) {
			pthread_cond_wait(&r->left, &r->lock);
			continue;
		}
		if (r->held)
			turns_spin(r);
		if (!r->held)
			return !r->over && r->failure == 0;
		turns_sleep(r);
	}
	return false;
}

/* Takes turns until there are none. Needs the lock, drops it meanwhile. */
static void turns_take(struct render *r, struct lane *l)
{
	while (turns_await(r, l)) {
		struct batch *b = turns_fetch(r, l);

		if (b)
			turns_finish_batch(r, b);
	}
	/* Wake the next waiter: it must end, too. */
	pthread_cond_signal(&r->turn);
}

static void *lane_work(void *userdata)
{
	struct lane *l = userdata;

	if (l->maker_cpu >= 0 && sched_getcpu() == l->maker_cpu)
		thread_leave_cpu(l->maker_cpu);
	pthread_mutex_lock(&l->render->lock);
	turns_take(l->render, l);
	pthread_mutex_unlock(&l->render->lock);
	return NULL;
}

static void lane_deinit(const struct render *r, struct lane *l)
{
	/* The caller's state is in use until render_free(). */
	if (l->pool.state && l != r->lanes)
		r->ops->end(l->pool.state);
	batch_pool_deinit(&l->pool);
	error_deinit(&l->err);
}

static int lane_init(struct render *r, struct lane *l)
{
	int e;

	*l = (struct lane){ .render = r, .maker_cpu = sched_getcpu() };
	e = batch_pool_init(&l->pool, &r->env);
	if (e < 0)
		return e;
	if (l != r->lanes)
		return r->ops->begin(&l->pool.state, r->sink);
	l->pool.state = r->state;
	return 0;
}

/* Starts the remaining threads, as far as possible. Needs the lock. */
static void turns_add_lanes(struct render *r)
{
	while (r->lane_count < r->threads) {
		struct lane *l = &r->lanes[r->lane_count];

		if (lane_init(r, l) < 0 || thread_begin(&l->thread, STACK_SIZE, lane_work, l) < 0) {
			lane_deinit(r, l);
			return;
		}
		r->lane_count++;
	}
	/* Some kernels queue a new thread behind its creator for milliseconds. */
	sched_yield();
}

static int turns_recall(void *userdata, struct error *err)
{
	return render_drain(userdata, err);
}

/* False: out of memory. */
static bool turns_begin(struct render *r)
{
	r->lanes = aligned_alloc(CACHE_LINES, r->threads * sizeof(*r->lanes));
	if (!r->lanes)
		return false;
	if (lane_init(r, r->lanes) < 0) {
		lane_deinit(r, r->lanes);
		free(TAKE_PTR(r->lanes));
		return false;
	}
	r->lane_count = 1;
	r->env.head =
		event_head_of(event_table_common(r->info->events), r->info->layout.big_endian);
	*r->loan = (struct loan){ .recall = turns_recall, .userdata = r };
	known_tasks_init(&r->known, r->info->tasks);
	return true;
}

/* Waits for the threads: afterwards all output is written. */
static int turns_end(struct render *r, struct error *err)
{
	for (unsigned i = 1; i < r->lane_count; i++)
		pthread_join(r->lanes[i].thread, NULL);
	for (unsigned i = 0; i < r->lane_count; i++)
		lane_deinit(r, &r->lanes[i]);
	free(TAKE_PTR(r->lanes));
	r->lane_count = 0;
	*r->loan = (struct loan){ 0 };
	if (r->failure < 0)
		return render_fail(r, r->failure, err);
	if (r->gave < 0)
		return error_move(err, &r->err);
	return render_report_weight(r, render_take_weight(r), err);
}

int render_run(struct render *r, int (*give)(void *userdata, struct error *err), void *userdata,
	       struct error *err)
{
	struct batch *b;

	r->give = give;
	r->userdata = userdata;
	if (r->threads == 1 || !turns_begin(r)) {
		int e;

		do
			e = give(userdata, err);
		while (e > 0);
		return e;
	}
	pthread_mutex_lock(&r->lock);
	/* Start no threads for a recording that fits one batch. */
	b = turns_fetch(r, r->lanes);
	if (!r->over)
		turns_add_lanes(r);
	if (b)
		turns_finish_batch(r, b);
	turns_take(r, r->lanes);
	pthread_mutex_unlock(&r->lock);
	return turns_end(r, err);
}

int render_drain(struct render *r, struct error *err)
{
	struct batch *b = r->filling;
	uint64_t weight;
	int e;

	if (!b)
		return 0;
	pthread_mutex_lock(&r->lock);
	/* Also with an empty batch: records lent earlier may still be in use by other threads. */
	turns_number(r, b);
	turns_finish_batch(r, b);
	while (r->written < r->filled)
		pthread_cond_wait(&r->left, &r->lock);
	r->filling = batch_take(b->pool, r->env.room);
	weight = turns_take_news(r);
	e = r->failure;
	pthread_mutex_unlock(&r->lock);
	return e < 0 ? render_fail(r, e, err) : render_report_weight(r, weight, err);
}
