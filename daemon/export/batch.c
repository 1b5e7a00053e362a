/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/batch.h"

int batch_pool_init(struct batch_pool *pool, const struct batch_env *env)
{
	*pool = (struct batch_pool){ 0 };
	for (size_t i = 0; i < BATCH_POOL; i++) {
		struct batch *b = &pool->batches[i];

		b->pool = pool;
		b->items = calloc(env->batch_events, sizeof(*b->items));
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
		buf_deinit(&pool->batches[i].out);
	}
	*pool = (struct batch_pool){ 0 };
}

struct batch *batch_take(struct batch_pool *pool)
{
	struct batch *b = pool->idle;

	pool->idle = b->next_idle;
	return b;
}

void batch_put(struct batch *b)
{
	b->count = 0;
	b->weight = 0;
	b->done = false;
	buf_clear(&b->out);
	b->next_idle = b->pool->idle;
	b->pool->idle = b;
}

static inline void read_item(const struct batch_env *env, const struct item *item,
			     struct trace_event *ret)
{
	ret->rec = (struct record){ item->ts, item->data, item->len };
	ret->next = NULL;
	ret->cpu = item->cpu;
	event_head_read(&env->head, ret);
	ret->desc = event_table_find(env->events, ret->id);
}

_hot_ void batch_render(struct batch *b, const struct batch_env *env)
{
	void *state = b->pool->state;
	struct trace_event ev;

	for (size_t i = 0; i < b->count && b->result == 0; i++) {
		const struct item *item = &b->items[i];

		if (likely(item->data)) {
			read_item(env, item, &ev);
			b->result = env->ops->event(state, &ev, &b->out, &b->weight);
		} else {
			b->result = env->ops->loss(state, item->cpu, item->ts, &b->out, &b->weight);
		}
	}
	if (b->result == 0)
		b->result = buf_error(&b->out);
}
