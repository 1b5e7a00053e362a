/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/batch.h"

int batch_pool_init(struct batch_pool *pool, const struct batch_env *env)
{
	*pool = (struct batch_pool){ 0 };
	for (size_t i = 0; i < BATCH_POOL; i++) {
		struct batch *b = &pool->batches[i];

		b->pool = pool;
		/* The last item may exceed the room left. */
		b->items = calloc(env->room / ITEM_ROOM + 1, sizeof(*b->items));
		if (!b->items)
			return -ENOMEM;
		batch_put(b);
	}
	return 0;
}

void batch_pool_deinit(struct batch_pool *pool)
{
	for (size_t i = 0; i < BATCH_POOL; i++) {
		free(pool->batches[i].items);
		buf_deinit(&pool->batches[i].notes);
		buf_deinit(&pool->batches[i].out);
	}
	*pool = (struct batch_pool){ 0 };
}

struct batch *batch_take(struct batch_pool *pool, size_t room)
{
	struct batch *b = pool->idle;

	pool->idle = b->next_idle;
	b->room = room;
	return b;
}

void batch_put(struct batch *b)
{
	b->count = 0;
	b->rendered = 0;
	b->weight = 0;
	b->done = false;
	buf_clear(&b->notes);
	buf_clear(&b->out);
	if (unlikely(b->out.cap > BATCH_KEPT))
		buf_deinit(&b->out);
	b->next_idle = b->pool->idle;
	b->pool->idle = b;
}

_hot_ bool batch_render(struct batch *b, const struct batch_env *env)
{
	const struct render_ops *ops = env->ops;
	const struct event_head head = env->head;
	const struct item *i = b->items + b->rendered, *end = b->items + b->count;
	const size_t most = BATCH_OUT(env->room);
	void *state = b->pool->state;
	struct trace_event ev = { 0 };
	int r = b->result;

	for (; i < end && likely(r == 0 && b->out.len < most); i++) {
		if (unlikely(!i->data)) {
			r = i->len ? ops->note(state, b->notes.data + i->ts, i->len, &b->out,
					       &b->weight)
				   : ops->loss(state, i->cpu, i->ts, &b->out, &b->weight);
			continue;
		}
		ev.rec = (struct record){ i->ts, i->data, i->len };
		ev.cpu = i->cpu;
		event_head_read(&head, &ev);
		ev.desc = event_table_find(env->events, ev.id);
		r = ops->event(state, &ev, &b->out, &b->weight);
	}
	b->rendered = (size_t)(i - b->items);
	b->result = r ?: buf_error(&b->out);
	return i == end || b->result < 0;
}
