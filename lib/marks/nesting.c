/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/nesting.h"

#include <xxhash.h>

#define CATEGORIES_MAX 65535
#define CATEGORY_MAX 1024 /* bytes */
#define DEPTH_MAX 65536	  /* open slices per thread; deeper ones are only counted */

/* Slot of an open-addressing table. */
struct thread {
	bool used;
	int32_t pid, tid;
	uint32_t depth, cap;
	uint16_t *open; /* owned; category numbers of open slices, 0: the empty category */
};

struct nesting {
	struct thread *threads; /* owned; slots */
	size_t thread_count, thread_slots;
	char **categories; /* owned; names by number, from 1 on */
	size_t category_count;
	uint16_t *category_at; /* owned; open addressing */
};

#define CATEGORY_SLOTS (1U << 17)

int nesting_new(struct nesting **ret)
{
	_cleanup_(nesting_freep) struct nesting *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->category_at = calloc(CATEGORY_SLOTS, sizeof(*n->category_at));
	n->categories = calloc(CATEGORIES_MAX + 1, sizeof(*n->categories));
	if (!n->category_at || !n->categories)
		return -ENOMEM;
	*ret = TAKE_PTR(n);
	return 0;
}

struct nesting *nesting_free(struct nesting *n)
{
	if (!n)
		return NULL;
	for (size_t i = 0; i < n->thread_slots; i++)
		free(n->threads[i].open);
	for (size_t i = 1; i <= n->category_count; i++)
		free(n->categories[i]);
	free(n->threads);
	free(n->categories);
	free(n->category_at);
	free(n);
	return NULL;
}

/* Returns 0 for the empty category, and above the limits of count or length. */
static int category_number(struct nesting *n, struct text cat)
{
	uint32_t at = (uint32_t)XXH3_64bits(cat.data, cat.len);

	if (!cat.len || cat.len > CATEGORY_MAX || memchr(cat.data, '\0', cat.len))
		return 0;
	for (;; at++) {
		uint16_t number = n->category_at[at & (CATEGORY_SLOTS - 1)];

		if (!number)
			break;
		if (strlen(n->categories[number]) == cat.len &&
		    !memcmp(n->categories[number], cat.data, cat.len))
			return number;
	}
	if (n->category_count == CATEGORIES_MAX)
		return 0;
	n->categories[n->category_count + 1] = strndup(cat.data, cat.len);
	if (!n->categories[n->category_count + 1])
		return -ENOMEM;
	return n->category_at[at & (CATEGORY_SLOTS - 1)] = (uint16_t)++n->category_count;
}

static struct thread *place(struct thread *all, size_t slots, int32_t pid, int32_t tid)
{
	size_t at = (size_t)((uint32_t)tid * UINT32_C(0x9e3779b9) >> 8) + (uint32_t)pid;

	for (;; at++) {
		struct thread *t = &all[at & (slots - 1)];

		if (!t->used || (t->pid == pid && t->tid == tid))
			return t;
	}
}

static int grow(struct nesting *n)
{
	size_t slots = MAX((size_t)64, n->thread_slots * 2);
	struct thread *all = calloc(slots, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < n->thread_slots; i++)
		if (n->threads[i].used)
			*place(all, slots, n->threads[i].pid, n->threads[i].tid) = n->threads[i];
	free(n->threads);
	n->threads = all;
	n->thread_slots = slots;
	return 0;
}

static int push(struct thread *t, int category)
{
	if (t->depth < DEPTH_MAX && t->depth == t->cap) {
		uint32_t cap = MAX(UINT32_C(8), t->cap * 2);
		uint16_t *open = reallocarray(t->open, cap, sizeof(*open));

		if (!open)
			return -ENOMEM;
		t->open = open;
		t->cap = cap;
	}
	if (t->depth < DEPTH_MAX)
		t->open[t->depth] = (uint16_t)category;
	t->depth += t->depth < UINT32_MAX;
	return 1;
}

int nesting_check(struct nesting *n, struct mark *mark)
{
	struct thread *t;
	int category;

	if (mark->phase != PHASE_BEGIN && mark->phase != PHASE_END)
		return 1;
	if (n->thread_count * 2 >= n->thread_slots && grow(n) < 0)
		return -ENOMEM;
	t = place(n->threads, n->thread_slots, mark->pid, mark->tid);
	n->thread_count += !t->used;
	t->used = true;
	t->pid = mark->pid;
	t->tid = mark->tid;
	if (mark->phase == PHASE_BEGIN) {
		category = category_number(n, mark->part[PART_CAT]);
		if (!category)
			mark->part[PART_CAT] = (struct text){ 0 };
		return category < 0 ? category : push(t, category);
	}
	if (!t->depth)
		return 0;
	category = --t->depth < DEPTH_MAX ? t->open[t->depth] : 0;
	mark->part[PART_CAT] = (struct text){ 0 };
	if (category)
		mark->part[PART_CAT] = (struct text){ n->categories[category],
						      (uint32_t)strlen(n->categories[category]) };
	return 1;
}
