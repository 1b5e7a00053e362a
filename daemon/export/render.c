/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ring of batches, which all have a number: those below `written` have left, those below
 * `claimed` are some thread's, those below `filled` are to be rendered. The one that is
 * being filled is the caller's thread's alone.
 */
#include "export/render.h"

#include "export/event_head.h"
#include "export/loan.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

/* Of one batch: enough that a thread is not woken for nothing, and it all stays in its cache. */
#define BATCH_EVENTS 1024
#define BATCHES_PER_THREAD 4
/* Events: together they take longer than memory does to answer, once and twice. */
#define SOON 6
#define FAR 12
#define STACK_SIZE (256U << 10)

/*
 * Where an event is. It is small, as it goes from one CPU's cache to another's, and the record lies
 * where the merge has it.
 */
struct item {
	const uint8_t *data; /* lent; NULL: a loss */
	uint64_t ts;	     /* of a loss: how many */
	uint32_t len, cpu;
};

/* Threads that write to neighbours at a time would wait for each other's caches. */
#define CACHE_LINES 128

struct batch {
	_Alignas(CACHE_LINES) struct item *items; /* owned; BATCH_EVENTS */
	size_t count;
	struct buf out;
	uint64_t weight;
	int result;
	bool done;
};

struct worker {
	struct render *render;
	pthread_t thread;
	void *state;
};

#define KNOWN_TASKS 256

struct known {
	int32_t pid; /* 0: none */
	uint64_t from_ts, until_ts;
};

struct render {
	const struct render_ops *ops;
	struct sink *sink;
	const struct trace_info *info;
	struct event_head head;
	struct output *out;
	void *state;	    /* owned */
	unsigned threads;   /* 1: alone */
	bool has_functions; /* what ops->soon is for */
	struct batch *batches;
	size_t batch_count;
	struct batch *filling; /* number `filled` */
	struct known known[KNOWN_TASKS];
	struct worker workers[RENDER_THREADS_MAX];
	size_t worker_count;
	pthread_mutex_t lock; /* of what follows, and of done in the batches */
	pthread_cond_t work, done;
	uint64_t filled, claimed, written;
	int caller_cpu; /* where it was last */
	bool quit;
};

static struct batch *batch_of(struct render *r, uint64_t number)
{
	return &r->batches[number % r->batch_count];
}

static inline void read_item(const struct render *r, const struct item *item,
			     struct trace_event *ret)
{
	ret->rec = (struct record){ item->ts, item->data, item->len };
	ret->next = NULL;
	ret->cpu = item->cpu;
	event_head_read(&r->head, ret);
	ret->desc = event_table_find(r->info->events, ret->id);
}

/* Has memory fetched what an event behind is going to need. */
static inline void look_ahead(const struct render *r, void *state, const struct batch *b, size_t i)
{
	struct trace_event ev;

	if (likely(i + FAR < b->count))
		__builtin_prefetch(b->items[i + FAR].data);
	if (unlikely(r->has_functions) && i + SOON < b->count && b->items[i + SOON].data) {
		read_item(r, &b->items[i + SOON], &ev);
		r->ops->soon(state, &ev);
	}
}

_hot_ static void render_batch(const struct render *r, void *state, struct batch *b)
{
	struct trace_event ev;

	for (size_t i = 0; i < b->count && b->result == 0; i++) {
		const struct item *item = &b->items[i];

		look_ahead(r, state, b, i);
		if (likely(item->data)) {
			read_item(r, item, &ev);
			b->result = r->ops->event(state, &ev, &b->out, &b->weight);
		} else {
			b->result = r->ops->loss(state, item->cpu, item->ts, &b->out, &b->weight);
		}
	}
	if (b->result == 0)
		b->result = buf_error(&b->out);
}

/* Renders the oldest batch that is nobody's; with the lock held, which it gives up meanwhile. */
static void claim(struct render *r, void *state)
{
	struct batch *b = batch_of(r, r->claimed++);

	pthread_mutex_unlock(&r->lock);
	render_batch(r, state, b);
	pthread_mutex_lock(&r->lock);
	b->done = true;
}

/*
 * A kernel that keeps CPUs asleep wakes a thread where its waker runs, and lets the two take turns
 * there for as long as they wait for each other.
 */
static void leave_cpu(int cpu)
{
	cpu_set_t all, others;

	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return;
	others = all;
	CPU_CLR((size_t)cpu, &others);
	if (CPU_COUNT(&others) && sched_setaffinity(0, sizeof(others), &others) == 0)
		sched_setaffinity(0, sizeof(all), &all);
}

/* Until there is a batch that is nobody's, or false: there will be none. With the lock held. */
static bool await_batch(struct render *r)
{
	while (!r->quit && r->claimed == r->filled) {
		int cpu;

		pthread_cond_wait(&r->work, &r->lock);
		cpu = sched_getcpu();
		if (cpu < 0 || r->quit || cpu != r->caller_cpu)
			continue;
		pthread_mutex_unlock(&r->lock);
		leave_cpu(cpu);
		pthread_mutex_lock(&r->lock);
	}
	return !r->quit;
}

static void *work(void *userdata)
{
	struct worker *w = userdata;
	struct render *r = w->render;

	pthread_mutex_lock(&r->lock);
	while (await_batch(r)) {
		claim(r, w->state);
		pthread_cond_signal(&r->done);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static int add_worker(struct render *r)
{
	struct worker *w = &r->workers[r->worker_count];
	sigset_t all, old;
	pthread_attr_t attr;
	int e;

	*w = (struct worker){ .render = r };
	e = r->ops->begin(&w->state, r->sink);
	if (e < 0)
		return e;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	/* Signals are the caller's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&w->thread, &attr, work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (e) {
		r->ops->end(w->state);
		return -e;
	}
	r->worker_count++;
	return 0;
}

static unsigned usable_cpus(void)
{
	cpu_set_t set;

	/* Fails where the kernel knows of more CPUs than the set holds: there are enough, then. */
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return RENDER_THREADS_MAX;
	return (unsigned)MIN(CPU_COUNT(&set), RENDER_THREADS_MAX);
}

int render_new(struct render **ret, const struct render_ops *ops, struct sink *sink,
	       const struct trace_info *info, struct output *out, unsigned threads)
{
	_cleanup_(render_freep) struct render *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	r->ops = ops;
	r->sink = sink;
	r->info = info;
	r->has_functions = ops->soon && strncmp(info->header->tracer, "function", 8) == 0;
	r->out = out;
	/* Without the loan records are gone when a thread would read them. */
	r->threads = info->loan ? MIN(threads ?: usable_cpus(), (unsigned)RENDER_THREADS_MAX) : 1;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->work, NULL);
	pthread_cond_init(&r->done, NULL);
	e = ops->begin(&r->state, sink);
	if (e < 0)
		return e;
	*ret = TAKE_PTR(r);
	return 0;
}

static void stop_workers(struct render *r)
{
	pthread_mutex_lock(&r->lock);
	r->quit = true;
	pthread_cond_broadcast(&r->work);
	pthread_mutex_unlock(&r->lock);
	for (; r->worker_count; r->worker_count--) {
		pthread_join(r->workers[r->worker_count - 1].thread, NULL);
		r->ops->end(r->workers[r->worker_count - 1].state);
	}
}

static void free_batches(struct render *r)
{
	for (size_t i = 0; i < r->batch_count; i++) {
		free(r->batches[i].items);
		buf_deinit(&r->batches[i].out);
	}
	free(TAKE_PTR(r->batches));
	r->batch_count = 0;
	if (r->info->loan)
		*r->info->loan = (struct loan){ 0 };
}

static int recall(void *userdata, struct error *err)
{
	return render_drain(userdata, err);
}

struct render *render_free(struct render *r)
{
	if (!r)
		return NULL;
	stop_workers(r);
	free_batches(r);
	if (r->state)
		r->ops->end(r->state);
	pthread_cond_destroy(&r->done);
	pthread_cond_destroy(&r->work);
	pthread_mutex_destroy(&r->lock);
	free(r);
	return NULL;
}

/* At the first event, so that what has none makes no threads. Where it can't be: alone. */
static void begin_batches(struct render *r)
{
	size_t count = (size_t)r->threads * BATCHES_PER_THREAD;

	r->batches = aligned_alloc(CACHE_LINES, count * sizeof(*r->batches));
	if (!r->batches)
		goto alone;
	memset(r->batches, 0, count * sizeof(*r->batches));
	r->batch_count = count;
	for (size_t i = 0; i < count; i++) {
		struct batch *b = &r->batches[i];

		b->items = calloc(BATCH_EVENTS, sizeof(*b->items));
		if (!b->items)
			goto alone;
	}
	while (r->worker_count + 1 < r->threads && add_worker(r) == 0)
		;
	if (r->worker_count) {
		r->filling = batch_of(r, r->filled);
		r->head = event_head_of(event_table_common(r->info->events),
					r->info->layout.big_endian);
		*r->info->loan = (struct loan){ .recall = recall, .userdata = r };
		return;
	}
alone:
	free_batches(r);
	r->threads = 1;
}

static int fail(const struct render *r, int e, struct error *err)
{
	return error_errno(err, e, "%s", r->ops->failure);
}

/* Writes the oldest batch, which is done. */
static int write_batch(struct render *r, struct error *err)
{
	struct batch *b = batch_of(r, r->written);
	int e = b->result;

	if (e == 0)
		e = output_take(r->out, &b->out);
	if (e < 0)
		return fail(r, e, err);
	if (r->ops->took) {
		e = r->ops->took(r->sink, b->weight, err);
		if (e < 0)
			return e;
	}
	b->count = 0;
	b->weight = 0;
	b->done = false;
	buf_clear(&b->out);
	r->info->loan->returned = ++r->written;
	return 0;
}

/* Until no more than `most` batches are on their way: renders those that nobody has, and waits. */
static int settle(struct render *r, size_t most, struct error *err)
{
	int e = 0;

	pthread_mutex_lock(&r->lock);
	while (e == 0 && r->written < r->filled) {
		if (batch_of(r, r->written)->done) {
			/* It is this thread's alone by now. */
			pthread_mutex_unlock(&r->lock);
			e = write_batch(r, err);
			pthread_mutex_lock(&r->lock);
		} else if (r->filled - r->written <= most) {
			break;
		} else if (r->claimed < r->filled) {
			claim(r, r->state);
		} else {
			pthread_cond_wait(&r->done, &r->lock);
		}
	}
	pthread_mutex_unlock(&r->lock);
	return e;
}

/* With the lock held. */
static void fill_next(struct render *r)
{
	r->info->loan->lent = ++r->filled;
	r->filling = batch_of(r, r->filled);
}

/* Gives the batch that was filled to the workers, and leaves room for the next one. */
static int submit(struct render *r, struct error *err)
{
	pthread_mutex_lock(&r->lock);
	fill_next(r);
	r->caller_cpu = sched_getcpu();
	/* Not for each: a thread that finds nothing more to do sleeps again. */
	if (r->filled - r->claimed >= BATCHES_PER_THREAD / 2)
		pthread_cond_signal(&r->work);
	pthread_mutex_unlock(&r->lock);
	return settle(r, r->batch_count - 1, err);
}

/* One more of the batch that is being filled. */
static inline int add_item(struct render *r, const struct item *item, struct error *err)
{
	if (unlikely(r->filling->count == BATCH_EVENTS)) {
		int e = submit(r, err);

		if (e < 0)
			return e;
	}
	r->filling->items[r->filling->count++] = *item;
	return 0;
}

static inline int event_alone(struct render *r, const struct trace_event *ev, struct error *err)
{
	uint64_t weight = 0;
	int e = r->ops->event(r->state, ev, &r->out->buf, &weight);

	if (likely(e == 0))
		e = output_settle(r->out);
	if (unlikely(e < 0))
		return fail(r, e, err);
	return r->ops->took ? r->ops->took(r->sink, weight, err) : 0;
}

/* Whether ev's task was looked up before: looking for it once more doesn't change the table. */
static inline bool is_known(const struct render *r, const struct trace_event *ev)
{
	const struct known *k = &r->known[(uint32_t)ev->pid % KNOWN_TASKS];

	return ev->pid <= 0 ||
	       (k->pid == ev->pid && ev->rec.ts >= k->from_ts && ev->rec.ts < k->until_ts);
}

/* The table looks for names at most once; not under the workers' eyes. */
static __attribute__((noinline)) int learn(struct render *r, const struct trace_event *ev,
					   struct error *err)
{
	struct known *k = &r->known[(uint32_t)ev->pid % KNOWN_TASKS];
	struct task_table *tasks = r->info->tasks;
	const struct task *task;
	int e;

	if (task_table_would_fill(tasks, ev->pid, ev->rec.ts)) {
		e = render_drain(r, err);
		if (e < 0)
			return e;
	}
	task = task_table_find(tasks, ev->pid, ev->rec.ts);
	*k = (struct known){ .pid = ev->pid, .until_ts = UINT64_MAX };
	if (task) {
		k->from_ts = task_is_oldest(task) ? 0 : task->from_ts;
		k->until_ts = task_table_until(tasks, task);
	}
	return 0;
}

int render_learn(struct render *r, const struct trace_event *ev, struct error *err)
{
	return likely(!r->batches || is_known(r, ev)) ? 0 : learn(r, ev, err);
}

/* Out of the way of those that are rendered alone. */
static __attribute__((noinline)) int event_batched(struct render *r, const struct trace_event *ev,
						   struct error *err)
{
	int e = likely(is_known(r, ev)) ? 0 : learn(r, ev, err);

	/* What is next, of a function_graph's event, doesn't count: none of these comes here. */
	return unlikely(e < 0) ? e
			       : add_item(r,
					  &(struct item){
						  .data = ev->rec.data,
						  .ts = ev->rec.ts,
						  .len = ev->rec.len,
						  .cpu = ev->cpu,
					  },
					  err);
}

_hot_ int render_event(struct render *r, const struct trace_event *ev, struct error *err)
{
	if (unlikely(!r->batches && r->threads > 1))
		begin_batches(r);
	return r->threads == 1 ? event_alone(r, ev, err) : event_batched(r, ev, err);
}

int render_event_now(struct render *r, const struct trace_event *ev, struct error *err)
{
	int e = render_drain(r, err);

	return e < 0 ? e : event_alone(r, ev, err);
}

static int loss_alone(struct render *r, uint32_t cpu, uint64_t count, struct error *err)
{
	uint64_t weight = 0;
	int e = r->ops->loss(r->state, cpu, count, &r->out->buf, &weight);

	if (e == 0)
		e = output_settle(r->out);
	if (e < 0)
		return fail(r, e, err);
	return r->ops->took ? r->ops->took(r->sink, weight, err) : 0;
}

int render_loss(struct render *r, uint32_t cpu, uint64_t count, struct error *err)
{
	return r->batches ? add_item(r, &(struct item){ .ts = count, .cpu = cpu }, err)
			  : loss_alone(r, cpu, count, err);
}

int render_drain(struct render *r, struct error *err)
{
	if (!r->batches)
		return 0;
	if (r->filling->count) {
		pthread_mutex_lock(&r->lock);
		fill_next(r);
		pthread_mutex_unlock(&r->lock);
	}
	return settle(r, 0, err);
}

int render_alone(struct render *r, struct error *err)
{
	int e = render_drain(r, err);

	if (e < 0)
		return e;
	stop_workers(r);
	free_batches(r);
	r->threads = 1;
	return 0;
}

void *render_state(struct render *r)
{
	return r->state;
}
