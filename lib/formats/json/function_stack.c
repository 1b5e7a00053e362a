/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/function_stack.h"

#include <string.h>

#define THREADS_MAX (1U << 16)
#define DEPTH_MAX 512
#define LEVELS_MAX (1U << 20) /* over all threads: 32 MiB */

struct function_stacks {
	struct function_stack **threads; /* owned; open addressing by tid */
	size_t count, cap;
	uint32_t levels;
};

int function_stacks_new(struct function_stacks **ret)
{
	struct function_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->cap = 1024;
	s->threads = calloc(s->cap, sizeof(struct function_stack *));
	if (!s->threads) {
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

struct function_stacks *function_stacks_free(struct function_stacks *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->cap; i++) {
		if (!s->threads[i])
			continue;
		free(s->threads[i]->levels);
		free(s->threads[i]->run);
		free(s->threads[i]);
	}
	free(s->threads);
	free(s);
	return NULL;
}

static struct function_stack **slot_of(struct function_stack **threads, size_t cap, int32_t tid)
{
	size_t i = (uint32_t)tid * 2654435769U & (cap - 1);

	while (threads[i] && threads[i]->tid != tid)
		i = (i + 1) & (cap - 1);
	return &threads[i];
}

static int grow(struct function_stacks *s)
{
	size_t cap = s->cap * 2;
	struct function_stack **threads = calloc(cap, sizeof(struct function_stack *));

	if (!threads)
		return -ENOMEM;
	for (size_t i = 0; i < s->cap; i++)
		if (s->threads[i])
			*slot_of(threads, cap, s->threads[i]->tid) = s->threads[i];
	free(s->threads);
	s->threads = threads;
	s->cap = cap;
	return 0;
}

struct function_stack *function_stacks_get(struct function_stacks *s, int32_t tid)
{
	struct function_stack **slot = slot_of(s->threads, s->cap, tid);

	if (likely(*slot))
		return *slot;
	if (s->count == THREADS_MAX || (s->count * 2 >= s->cap && grow(s) < 0))
		return NULL;
	slot = slot_of(s->threads, s->cap, tid);
	*slot = calloc(1, sizeof(**slot));
	if (!*slot)
		return NULL;
	(*slot)->tid = tid;
	s->count++;
	return *slot;
}

bool function_stack_reach(struct function_stacks *s, struct function_stack *t, uint32_t depth)
{
	if (depth >= t->cap) {
		uint32_t cap = MAX(depth + 1, MAX(t->cap * 2, 8U));
		struct level *levels;

		if (depth >= DEPTH_MAX || cap - t->cap > LEVELS_MAX - s->levels)
			return false;
		levels = reallocarray(t->levels, cap, sizeof(*levels));
		if (!levels)
			return false;
		s->levels += cap - t->cap;
		t->levels = levels;
		t->cap = cap;
	}
	while (t->depth <= depth)
		t->levels[t->depth++] = (struct level){ 0 };
	return true;
}

struct function_stack *function_stacks_next(struct function_stacks *s, size_t *cursor)
{
	while (*cursor < s->cap) {
		struct function_stack *t = s->threads[(*cursor)++];

		if (t)
			return t;
	}
	return NULL;
}
