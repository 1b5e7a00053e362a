/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/nesting.h"

#include <xxhash.h>

#include "base/table.h"
#include "base/vec.h"

#define CATEGORIES_MAX 65535
#define CATEGORY_MAX 1024     /* bytes */
#define DEPTH_MAX 65536	      /* open slices per thread; deeper ones are only counted */
#define NAMES_MAX (64U << 20) /* bytes of the names of all open slices; beyond, ends have none */

struct open_slice {
	uint16_t category; /* its number; 0: the empty category */
	uint32_t name_len;
};

struct thread {
	bool used;
	int32_t pid, tid;
	uint32_t depth, cap;
	struct open_slice *open; /* owned */
	struct buf names;	 /* of the open slices, one after the other */
};

static size_t hash_thread(int32_t pid, int32_t tid)
{
	return (size_t)((uint32_t)tid * UINT32_C(0x9e3779b9) >> 8) + (uint32_t)pid;
}

DECLARE_TABLE(thread_slots, struct thread);
DEFINE_TABLE(thread_slots, struct thread, const struct mark *, slot->used,
	     hash_thread(slot->pid, slot->tid), slot->pid == key->pid && slot->tid == key->tid);

struct category {
	uint32_t hash, number; /* number 0: a free slot */
};
DECLARE_TABLE(category_slots, struct category);

struct nesting {
	struct thread_slots threads;
	char **names; /* owned; of categories, from number 1 on */
	size_t name_cap;
	struct category_slots categories;
	size_t name_bytes; /* of all threads */
};

static bool category_has_name(const struct nesting *n, uint32_t number, struct text name)
{
	const char *own = n->names[number - 1];

	return strlen(own) == name.len && !memcmp(own, name.data, name.len);
}

struct category_key {
	const struct nesting *n;
	struct text name;
	uint32_t hash;
};
DEFINE_TABLE(category_slots, struct category, const struct category_key *, slot->number, slot->hash,
	     slot->hash == key->hash && category_has_name(key->n, slot->number, key->name));

int nesting_new(struct nesting **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

struct nesting *nesting_free(struct nesting *n)
{
	if (!n)
		return NULL;
	TABLE_FOR_EACH(thread_slots, &n->threads, thread)
	{
		free(thread->open);
		buf_deinit(&thread->names);
	}
	for (size_t i = 0; i < n->categories.count; i++)
		free(n->names[i]);
	TABLE_DEINIT(&n->threads);
	TABLE_DEINIT(&n->categories);
	free(n->names);
	free(n);
	return NULL;
}

/* Returns 0 for the empty category, and above the limits of count or length. */
static int category_number(struct nesting *n, struct text cat)
{
	struct category_key key = { n, cat, (uint32_t)XXH3_64bits(cat.data, cat.len) };
	struct category *c;

	if (!cat.len || cat.len > CATEGORY_MAX || memchr(cat.data, '\0', cat.len))
		return 0;
	c = category_slots_place(&n->categories, key.hash, &key);
	if (!c || vec_reserve(n->names, n->categories.count, n->name_cap, 1) < 0)
		return -ENOMEM;
	if (c->number || n->categories.count == CATEGORIES_MAX)
		return (int)c->number;
	n->names[n->categories.count] = strndup(cat.data, cat.len);
	if (!n->names[n->categories.count])
		return -ENOMEM;
	*c = (struct category){ key.hash, ++n->categories.count };
	return (int)c->number;
}

static int thread_push(struct nesting *n, struct thread *t, int category, struct text name)
{
	if (name.len > NAMES_MAX - n->name_bytes)
		name.len = 0;
	if (t->depth < DEPTH_MAX) {
		if (vec_reserve(t->open, t->depth, t->cap, 1) < 0)
			return -ENOMEM;
		t->open[t->depth] = (struct open_slice){ (uint16_t)category, name.len };
		buf_append(&t->names, name.data, name.len);
		n->name_bytes += name.len;
	}
	t->depth += t->depth < UINT32_MAX;
	return buf_error(&t->names) ?: 1;
}

static void thread_pop(struct nesting *n, struct thread *t, struct mark *mark)
{
	struct open_slice *o = --t->depth < DEPTH_MAX ? &t->open[t->depth] : NULL;

	mark->part[PART_CAT] = mark->begun = (struct text){ 0 };
	if (!o)
		return;
	if (o->category) {
		const char *cat = n->names[o->category - 1];

		mark->part[PART_CAT] = (struct text){ cat, (uint32_t)strlen(cat) };
	}
	t->names.len -= o->name_len;
	n->name_bytes -= o->name_len;
	mark->begun = (struct text){ t->names.data + t->names.len, o->name_len };
}

int nesting_check(struct nesting *n, struct mark *mark)
{
	struct thread *t;
	int category;

	if (mark->phase != PHASE_BEGIN && mark->phase != PHASE_END)
		return 1;
	t = thread_slots_place(&n->threads, hash_thread(mark->pid, mark->tid), mark);
	if (!t)
		return -ENOMEM;
	n->threads.count += !t->used;
	t->used = true;
	t->pid = mark->pid;
	t->tid = mark->tid;
	if (mark->phase == PHASE_BEGIN) {
		category = category_number(n, mark->part[PART_CAT]);
		if (!category)
			mark->part[PART_CAT] = (struct text){ 0 };
		return category < 0 ? category : thread_push(n, t, category, mark->part[PART_NAME]);
	}
	if (!t->depth)
		return 0;
	thread_pop(n, t, mark);
	return 1;
}
