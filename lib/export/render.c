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
#include "export/render.h"

#include "base/io.h"
#include "base/thread.h"
#include "export/batch.h"
#include "trace/known_tasks.h"
#include "trace/loan.h"

#include <sched.h>

#define SPIN_NS 30000
#define STACK_SIZE (1U << 20)

/* State of one thread. */
struct lane {
	_Alignas(CACHE_LINES) struct render *render;
	pthread_t thread;
	int maker_cpu;		/* CPU on which the thread was created; -1: unknown */
	struct batch_pool pool; /* its `state` is owned, except the caller's */
	struct error err;
};

#define RING (RENDER_THREADS_MAX * BATCH_POOL)

struct render {
	const struct render_ops *ops;
	struct sink *sink;
	const struct trace_info *info;
	struct loan *loan; /* or NULL */
	struct batch_env env;
	struct output *out;
	void *state;	  /* owned; the caller's, also used by its lane */
	struct buf note;  /* the note being rendered directly */
	unsigned threads; /* 1: single-threaded */
	/* For the thread that has the turn: */
	struct batch *filling; /* NULL: events are rendered directly */
	struct known_tasks known;
	int (*give)(void *userdata, struct error *err);
	void *userdata;
	struct lane *lanes; /* owned; lane_count used of `threads`; the first is the caller's */
	unsigned lane_count;
	pthread_mutex_t lock; /* protects all below, the lanes' idle batches and `done` */
	pthread_cond_t turn, left;
	struct batch *ring[RING]; /* by number % RING, from `written` to `filled` */
	uint64_t filled, written;
	/*
	 * Weight of output not yet reported to ops->took. No lock is needed while events are
	 * rendered directly: no other thread runs.
	 */
	uint64_t weight;
	int giver_cpu; /* CPU of the last turn */
	bool held;     /* some thread has the turn */
	bool writing;
	bool over;   /* no more turns */
	int gave;    /* result of the last turn; its error is in err */
	int failure; /* first failure to render or write */
	struct error err;
};

/*
 * Writes all finished batches that are next in order, unless another thread is writing. Drops the
 * lock meanwhile.
 */
static void render_write_done(struct render *r)
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
static void render_number(struct render *r, struct batch *b)
{
	r->ring[r->filled++ % RING] = b;
}

/* Writes part of b's output once b is next in order. Drops the lock meanwhile. */
static void render_write_part(struct render *r, struct batch *b)
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
static void render_finish_batch(struct render *r, struct batch *b)
{
	bool all;

	do {
		pthread_mutex_unlock(&r->lock);
		all = batch_render(b, &r->env);
		pthread_mutex_lock(&r->lock);
		if (unlikely(!all))
			render_write_part(r, b);
	} while (unlikely(!all));
	b->done = true;
	render_write_done(r);
}

static uint64_t render_take_weight(struct render *r)
{
	uint64_t weight = r->weight;

	r->weight = 0;
	return weight;
}

/* Progress of the other threads, for the thread that has the turn. Needs the lock. */
static uint64_t render_take_news(struct render *r)
{
	r->loan->lent = r->filled;
	r->loan->returned = r->written;
	return render_take_weight(r);
}

static int render_report_weight(const struct render *r, uint64_t weight, struct error *err)
{
	return r->ops->took && weight ? r->ops->took(r->sink, weight, err) : 0;
}

/* One turn: fetches a batch and numbers it. NULL: no events. Drops the lock meanwhile. */
static struct batch *render_fetch(struct render *r, struct lane *l)
{
	struct batch *b;
	uint64_t weight;
	int e;

	__atomic_store_n(&r->held, true, __ATOMIC_RELAXED);
	r->filling = batch_take(&l->pool, r->env.room);
	weight = render_take_news(r);
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
		render_number(r, b);
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
static void render_spin(struct render *r)
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
static void render_sleep(struct render *r)
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
static bool render_await_turn(struct render *r, const struct lane *l)
{
	while (!r->over && r->failure == 0) {
		if (!l->pool.idle) {
			pthread_cond_wait(&r->left, &r->lock);
			continue;
		}
		if (r->held)
			render_spin(r);
		if (!r->held)
			return !r->over && r->failure == 0;
		render_sleep(r);
	}
	return false;
}

/* Takes turns until there are none. Needs the lock, drops it meanwhile. */
static void render_take_turns(struct render *r, struct lane *l)
{
	while (render_await_turn(r, l)) {
		struct batch *b = render_fetch(r, l);

		if (b)
			render_finish_batch(r, b);
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
	render_take_turns(l->render, l);
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
static void render_add_lanes(struct render *r)
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

int render_new(struct render **ret, const struct render_ops *ops, struct sink *sink,
	       const struct sink_env *env, unsigned threads)
{
	_cleanup_(render_freep) struct render *r = cache_lines_new(sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	r->ops = ops;
	r->sink = sink;
	r->info = env->info;
	r->out = env->out;
	r->loan = env->loan;
	/* Without a loan, records don't live long enough for other threads. */
	r->threads = env->loan ? threads ? MIN(threads, (unsigned)RENDER_THREADS_MAX)
					 : thread_cpus(RENDER_THREADS_MAX)
			       : 1;
	r->env = (struct batch_env){
		.ops = ops,
		.events = env->info->events,
		.room = 2 * BATCH_ROOM / MAX(r->threads, 2U),
	};
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->turn, NULL);
	pthread_cond_init(&r->left, NULL);
	e = ops->begin(&r->state, sink);
	if (e < 0)
		return e;
	*ret = TAKE_PTR(r);
	return 0;
}

struct render *render_free(struct render *r)
{
	if (!r)
		return NULL;
	if (r->state)
		r->ops->end(r->state);
	pthread_cond_destroy(&r->left);
	pthread_cond_destroy(&r->turn);
	pthread_mutex_destroy(&r->lock);
	error_deinit(&r->err);
	buf_deinit(&r->note);
	free(r);
	return NULL;
}

static int render_fail(const struct render *r, int e, struct error *err)
{
	return error_errno(err, e, "%s", r->ops->failure);
}

static int render_recall(void *userdata, struct error *err)
{
	return render_drain(userdata, err);
}

/* False: out of memory. */
static bool render_begin_turns(struct render *r)
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
	*r->loan = (struct loan){ .recall = render_recall, .userdata = r };
	known_tasks_init(&r->known, r->info->tasks);
	return true;
}

/* Waits for the threads: afterwards all output is written. */
static int render_end_turns(struct render *r, struct error *err)
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
	if (r->threads == 1 || !render_begin_turns(r)) {
		int e;

		do
			e = give(userdata, err);
		while (e > 0);
		return e;
	}
	pthread_mutex_lock(&r->lock);
	/* Start no threads for a recording that fits one batch. */
	b = render_fetch(r, r->lanes);
	if (!r->over)
		render_add_lanes(r);
	if (b)
		render_finish_batch(r, b);
	render_take_turns(r, r->lanes);
	pthread_mutex_unlock(&r->lock);
	return render_end_turns(r, err);
}

/* Finishes direct rendering; e is its result. */
static inline int render_settle(struct render *r, int e, struct error *err)
{
	if (likely(e == 0))
		e = output_settle(r->out);
	if (unlikely(e < 0))
		return render_fail(r, e, err);
	return r->ops->took ? render_report_weight(r, render_take_weight(r), err) : 0;
}

static _noinline_ int render_event_directly(struct render *r, const struct trace_event *ev,
					    struct error *err)
{
	return render_settle(r, r->ops->event(r->state, ev, &r->out->buf, &r->weight), err);
}

/* A lookup may search for names and change the table: other threads must not read it then. */
static _noinline_ int render_learn_task(struct render *r, int32_t pid, uint64_t ts,
					struct error *err)
{
	if (pid > 0 && task_table_would_fill(r->info->tasks, pid, ts)) {
		int e = render_drain(r, err);

		if (e < 0)
			return e;
	}
	known_tasks_add(&r->known, pid, ts);
	return 0;
}

int render_learn(struct render *r, int32_t pid, uint64_t ts, struct error *err)
{
	return likely(!r->filling || known_tasks_has(&r->known, pid, ts))
		       ? 0
		       : render_learn_task(r, pid, ts, err);
}

/* Makes room for one more item in the current batch. */
static inline int render_make_room(struct render *r, struct error *err)
{
	return likely(r->filling->room) ? 0 : render_drain(r, err);
}

static inline void render_put_item(struct render *r, struct item item)
{
	struct batch *b = r->filling;

	b->items[b->count++] = item;
	b->room -= MIN(b->room, ITEM_ROOM + (size_t)item.len);
	r->loan->pause = !b->room;
}

static int render_add_item(struct render *r, struct item item, struct error *err)
{
	int e = render_make_room(r, err);

	if (e == 0)
		render_put_item(r, item);
	return e;
}

static inline struct item render_item_of(const struct trace_event *ev)
{
	/* Exits of function entries go by notes, not here. */
	return (struct item){ ev->rec.data, ev->rec.ts, ev->rec.len, ev->cpu };
}

/* Slow path: the batch becomes full, or the task is not yet known. */
static _noinline_ int render_event_slowly(struct render *r, const struct trace_event *ev,
					  struct error *err)
{
	int e = render_learn(r, ev->pid, ev->rec.ts, err);

	return e < 0 ? e : render_add_item(r, render_item_of(ev), err);
}

_hot_ int render_event(struct render *r, const struct trace_event *ev, struct error *err)
{
	size_t room = ITEM_ROOM + (size_t)ev->rec.len;
	struct batch *b = r->filling;

	if (!b)
		return render_event_directly(r, ev, err);
	if (unlikely(room >= b->room || !known_tasks_has(&r->known, ev->pid, ev->rec.ts)))
		return render_event_slowly(r, ev, err);
	b->items[b->count++] = render_item_of(ev);
	b->room -= room;
	return 0;
}

int render_event_now(struct render *r, const struct trace_event *ev, struct error *err)
{
	int e = render_drain(r, err);

	return e < 0 ? e : render_event_directly(r, ev, err);
}

static int render_loss_directly(struct render *r, uint32_t cpu, uint64_t count, struct error *err)
{
	return render_settle(r, r->ops->loss(r->state, cpu, count, &r->out->buf, &r->weight), err);
}

int render_loss(struct render *r, uint32_t cpu, uint64_t count, struct error *err)
{
	return r->filling ? render_add_item(r, (struct item){ .ts = count, .cpu = cpu }, err)
			  : render_loss_directly(r, cpu, count, err);
}

static int render_note_directly(struct render *r, const void *note, size_t len, struct error *err)
{
	return render_settle(r, r->ops->note(r->state, note, len, &r->out->buf, &r->weight), err);
}

static inline size_t align8(size_t at)
{
	return (at + 7) & ~(size_t)7;
}

int render_note_room(struct render *r, size_t max, void **ret, struct error *err)
{
	int e = r->filling ? render_make_room(r, err) : 0;
	struct buf *notes = r->filling ? &r->filling->notes : &r->note;
	size_t at = align8(notes->len);

	if (unlikely(e < 0))
		return e;
	if (unlikely(!buf_reserve(notes, at - notes->len + max)))
		return render_fail(r, -ENOMEM, err);
	*ret = notes->data + at;
	return 0;
}

int render_note_put(struct render *r, size_t len, struct error *err)
{
	struct buf *notes;
	size_t at;

	if (!r->filling)
		return render_note_directly(r, r->note.data, len, err);
	notes = &r->filling->notes;
	at = align8(notes->len);
	notes->len = at + len;
	render_put_item(r, (struct item){ .ts = at, .len = (uint32_t)len });
	return 0;
}

int render_note(struct render *r, const void *note, size_t len, struct error *err)
{
	void *room;
	int e;

	if (!r->filling)
		return render_note_directly(r, note, len, err);
	e = render_note_room(r, len, &room, err);
	if (unlikely(e < 0))
		return e;
	memcpy(room, note, len);
	return render_note_put(r, len, err);
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
	render_number(r, b);
	render_finish_batch(r, b);
	while (r->written < r->filled)
		pthread_cond_wait(&r->left, &r->lock);
	r->filling = batch_take(b->pool, r->env.room);
	weight = render_take_news(r);
	e = r->failure;
	pthread_mutex_unlock(&r->lock);
	return e < 0 ? render_fail(r, e, err) : render_report_weight(r, weight, err);
}

void *render_state(struct render *r)
{
	return r->state;
}
