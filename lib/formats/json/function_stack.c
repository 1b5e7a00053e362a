/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/function_stack.h"

#include <string.h>

#include "base/secret_hash.h"
#include "base/table.h"
#include "base/vec.h"

#define THREADS_MAX (1U << 16)
#define DEPTH_MAX 512
#define LEVELS_MAX (1U << 20) /* over all threads: 32 MiB */

#define TID_HASH(tid) hash_u32((uint32_t)(tid))
DECLARE_TABLE(thread_slots, struct function_stack *);
DEFINE_TABLE(thread_slots, struct function_stack *, int32_t, *slot, TID_HASH((*slot)->tid),
	     (*slot)->tid == key);

struct function_stacks {
	struct thread_slots threads;	     /* the stacks are owned */
	struct function_stack *first, **end; /* list of them; its last link */
	uint32_t levels;
};

int function_stacks_new(struct function_stacks **ret)
{
	struct function_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->end = &s->first;
	*ret = s;
	return 0;
}

struct function_stacks *function_stacks_free(struct function_stacks *s)
{
	if (!s)
		return NULL;
	TABLE_FOR_EACH(thread_slots, &s->threads, slot)
	{
		free((*slot)->levels);
		free((*slot)->run);
		free(*slot);
	}
	TABLE_DEINIT(&s->threads);
	free(s);
	return NULL;
}

struct function_stack *function_stacks_get(struct function_stacks *s, int32_t tid)
{
	struct function_stack **slot = thread_slots_find(&s->threads, TID_HASH(tid), tid);

	if (likely(slot))
		return *slot;
	if (s->threads.count == THREADS_MAX)
		return NULL;
	slot = thread_slots_place(&s->threads, TID_HASH(tid), tid);
	if (!slot)
		return NULL;
	*slot = calloc(1, sizeof(**slot));
	if (!*slot)
		return NULL;
	(*slot)->tid = tid;
	*s->end = *slot;
	s->end = &(*slot)->next;
	s->threads.count++;
	return *slot;
}

bool function_stack_reach(struct function_stacks *s, struct function_stack *t, uint32_t depth)
{
	if (depth >= t->cap) {
		uint32_t cap = MAX(depth + 1, MAX(t->cap * 2, 8U));

		if (depth >= DEPTH_MAX || cap - t->cap > LEVELS_MAX - s->levels)
			return false;
		/* Not vec_reserve(): LEVELS_MAX bounds what all threads have reserved. */
		if (vec_reserve_exact(t->levels, t->cap, cap - t->cap) < 0)
			return false;
		s->levels += cap - t->cap;
		t->cap = cap;
	}
	while (t->depth <= depth)
		t->levels[t->depth++] = (struct level){ 0 };
	return true;
}

struct function_stack *function_stacks_first(const struct function_stacks *s)
{
	return s->first;
}
