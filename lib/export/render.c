/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The renderer as its sink sees it: events, losses and notes go into a batch, or are rendered. */
#include "export/turns.h"

int render_fail(const struct render *r, int e, struct error *err)
{
	return error_errno(err, e, "%s", r->ops->failure);
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

void render_forget(struct render *r, void (*forget)(void *state))
{
	forget(r->state);
	/* The first lane's state is r->state. */
	for (unsigned i = 1; i < r->lane_count; i++)
		forget(r->lanes[i].pool.state);
	if (r->filling)
		known_tasks_init(&r->known, r->info->tasks);
}

void *render_state(struct render *r)
{
	return r->state;
}
