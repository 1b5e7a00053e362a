/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/nesting.h"

#include <xxhash.h>

#include "base/secret_hash.h"
#include "base/table.h"
#include "base/vec.h"
#include "trace/index.h"

#define IDLE_MIN 1024	/* threads without an open slice that are kept at least */
#define IDLE_BYTES 4096 /* a thread without an open slice keeps no larger memory */
#define CATEGORIES_MAX 65535
#define CATEGORY_MAX 1024 /* bytes */
#define DEPTH_MAX 65536	  /* open slices per thread; deeper ones are only counted */
/* Bytes of all threads with open slices, and of the slices and their names. */
#define MEMORY_MAX (192U << 20)
#define THREAD_BYTES (4 * sizeof(struct thread)) /* with its slots */

struct open_slice {
	uint16_t category; /* its number; 0: the empty category */
	uint32_t name_len;
};

struct thread {
	bool used;
	int32_t pid, tid;
	struct share_owner owner; /* of the first open slice */
	uint32_t depth, kept;	  /* open slices; the outer ones, which `open` has */
	uint32_t absent; /* slices above `kept` up to this depth began in an earlier file */
	uint32_t cap;
	struct open_slice *open; /* owned */
	struct buf names;	 /* of the open slices, one after the other */
};

DECLARE_TABLE(thread_slots, struct thread);
DEFINE_TABLE(thread_slots, struct thread, const struct mark *, slot->used,
	     hash_pair(slot->pid, slot->tid), slot->pid == key->pid && slot->tid == key->tid);

struct category {
	uint32_t hash, number; /* number 0: a free slot */
};
DECLARE_TABLE(category_slots, struct category);

struct nesting {
	struct thread_slots threads;
	char **names; /* owned; of categories, from number 1 on */
	size_t name_cap;
	struct category_slots categories;
	struct shares shares;
	uint64_t misnamed;     /* ends with another name than their begin */
	uint32_t idle;	       /* threads without an open slice */
	struct buf last_names; /* of the last end, if its thread gave them away */
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
	if (!*ret)
		return -ENOMEM;
	(*ret)->shares.max = MEMORY_MAX;
	return 0;
}

static void thread_deinit(struct thread *t)
{
	free(t->open);
	buf_deinit(&t->names);
}

struct nesting *nesting_free(struct nesting *n)
{
	if (!n)
		return NULL;
	TABLE_FOR_EACH(thread_slots, &n->threads, thread)
	thread_deinit(thread);
	for (size_t i = 0; i < n->categories.count; i++)
		free(n->names[i]);
	TABLE_DEINIT(&n->threads);
	TABLE_DEINIT(&n->categories);
	shares_deinit(&n->shares);
	buf_deinit(&n->last_names);
	free(n->names);
	free(n);
	return NULL;
}

/* Returns 0 for the empty category, and above the limits of count or length. */
static int category_number(struct nesting *n, struct text cat)
{
	struct category_key key = {
		n, cat, (uint32_t)XXH3_64bits_withSeed(cat.data, cat.len, hash_secret[0])
	};
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

/* Forgets threads without an open slice once they are most of the table, which may be large. */
static void threads_sweep(struct nesting *n)
{
	struct thread_slots *all = &n->threads;

	if (n->idle < IDLE_MIN || n->idle < all->count / 2 || n->idle < all->size / 4)
		return;
	/* Removing a thread moves a later one to its slot. */
	for (uint32_t i = 0; i < all->size;) {
		if (!all->slots[i].used || all->slots[i].depth) {
			i++;
			continue;
		}
		thread_deinit(&all->slots[i]);
		thread_slots_remove(all, &all->slots[i]);
	}
	n->idle = 0;
}

/* The mark's thread, new if need be. NULL: out of memory. */
static struct thread *thread_get(struct nesting *n, const struct mark *mark)
{
	uint64_t hash = hash_pair(mark->pid, mark->tid);
	struct thread *t = thread_slots_find(&n->threads, hash, mark);

	if (t)
		return t;
	threads_sweep(n);
	t = thread_slots_place(&n->threads, hash, mark);
	if (!t)
		return NULL;
	*t = (struct thread){ .used = true, .pid = mark->pid, .tid = mark->tid };
	n->threads.count++;
	n->idle++;
	return t;
}

/*
 * Takes room for a slice. 1: it is kept. 0: it is only counted, as are the slices in it; never a
 * thread's first one. -errno.
 */
static int nesting_take(struct nesting *n, const struct thread *t, const struct share_owner *owner,
			uint64_t bytes)
{
	int r;

	if (!t || !t->depth)
		return shares_take(&n->shares, owner, bytes + THREAD_BYTES) ?: 1;
	if (t->kept != t->depth || t->depth >= DEPTH_MAX)
		return 0;
	r = shares_try_take(&n->shares, owner, bytes);
	return r == -ENOSPC ? 0 : r ?: 1;
}

static int nesting_begin(struct nesting *n, struct mark *mark)
{
	struct text name = mark->part[PART_NAME];
	struct thread *t = thread_slots_find(&n->threads, hash_pair(mark->pid, mark->tid), mark);
	bool first = !t || !t->depth;
	const struct share_owner owner = first ? mark_owner_of(mark) : t->owner;
	int category = category_number(n, mark->part[PART_CAT]), keep = category;

	if (!category)
		mark->part[PART_CAT] = (struct text){ 0 };
	if (category >= 0)
		keep = nesting_take(n, t, &owner, sizeof(struct open_slice) + name.len);
	if (keep < 0)
		return keep;
	t = t ?: thread_get(n, mark);
	if (!t)
		return -ENOMEM;
	if (first) {
		n->idle--;
		t->owner = owner;
	}
	if (keep) {
		if (vec_reserve(t->open, t->kept, t->cap, 1) < 0)
			return -ENOMEM;
		t->open[t->kept++] = (struct open_slice){ (uint16_t)category, name.len };
		buf_append(&t->names, name.data, name.len);
	}
	t->absent = MIN(t->absent, t->depth);
	t->depth += t->depth < UINT32_MAX;
	return buf_error(&t->names) ?: 1;
}

static struct text category_name(const struct nesting *n, uint16_t number)
{
	const char *name = number ? n->names[number - 1] : "";

	return (struct text){ name, (uint32_t)strlen(name) };
}

static void thread_pop(struct nesting *n, struct thread *t, struct mark *mark)
{
	const struct open_slice *o = --t->depth < t->kept ? &t->open[--t->kept] : NULL;

	mark->part[PART_CAT] = mark->begun = (struct text){ 0 };
	if (!t->depth) {
		n->idle++;
		shares_return(&n->shares, &t->owner, THREAD_BYTES);
	}
	if (!o)
		return;
	shares_return(&n->shares, &t->owner, sizeof(*o) + o->name_len);
	mark->part[PART_CAT] = category_name(n, o->category);
	t->names.len -= o->name_len;
	mark->begun = (struct text){ (t->names.data ?: "") + t->names.len, o->name_len };
	n->misnamed += mark->part[PART_NAME].len && !text_equal(mark->part[PART_NAME], mark->begun);
	if (!t->depth && (t->names.cap > IDLE_BYTES || t->cap * sizeof(*t->open) > IDLE_BYTES)) {
		buf_deinit(&n->last_names);
		n->last_names = t->names;
		t->names = (struct buf)BUF_INIT;
		free(TAKE_PTR(t->open));
		t->cap = 0;
	}
}

int nesting_check(struct nesting *n, struct mark *mark)
{
	struct thread *t;
	bool absent;

	if (mark->phase == PHASE_BEGIN)
		return nesting_begin(n, mark);
	if (mark->phase != PHASE_END)
		return 1;
	t = thread_slots_find(&n->threads, hash_pair(mark->pid, mark->tid), mark);
	if (!t || !t->depth)
		return 0;
	absent = t->depth > t->kept && t->depth <= t->absent;
	thread_pop(n, t, mark);
	return !absent;
}

int nesting_warn(const struct nesting *n, struct stream_index *index)
{
	index->marks_lost |= n->shares.refused > 0;
	return shares_warn(&n->shares, "slices", "that are open", index)
		       ?: stream_index_warn_count(index, n->misnamed,
						  "end has another name than its begin: it ends "
						  "the innermost slice of its thread, which keeps "
						  "its name",
						  "ends have other names than their begins: each "
						  "ends the innermost slice of its thread, which "
						  "keeps its name");
}

typedef int (*reopen_fn)(void *userdata, const struct mark *mark, struct error *err);

/* ahead: of this thread, or NULL. */
static int thread_reopen(const struct nesting *n, struct thread *t, const struct mark *ahead,
			 uint64_t ts, reopen_fn give, void *userdata, struct error *err)
{
	struct mark begin = { .phase = PHASE_BEGIN, .pid = t->pid, .tid = t->tid, .ts = ts };
	uint32_t depth = t->depth - (ahead && ahead->phase == PHASE_BEGIN);
	const char *name = t->names.data;
	int r = 0;

	t->absent = depth;
	for (uint32_t i = 0; r == 0 && i < MIN(depth, t->kept); i++) {
		begin.part[PART_NAME] = (struct text){ name, t->open[i].name_len };
		begin.part[PART_CAT] = category_name(n, t->open[i].category);
		r = give(userdata, &begin, err);
		name += t->open[i].name_len;
	}
	if (r < 0 || !ahead || ahead->phase != PHASE_END)
		return r;
	/* The slice that ahead ends; if it was not kept, only the end may have its name. */
	begin.part[PART_NAME] = ahead->begun.data ? ahead->begun : ahead->part[PART_NAME];
	begin.part[PART_CAT] = ahead->part[PART_CAT];
	return give(userdata, &begin, err);
}

static int thread_compare(const void *a, const void *b)
{
	const struct thread *x = *(struct thread *const *)a, *y = *(struct thread *const *)b;

	return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid)
				: (x->tid > y->tid) - (x->tid < y->tid);
}

int nesting_reopen(struct nesting *n, const struct mark *ahead, uint64_t ts, reopen_fn give,
		   void *userdata, struct error *err)
{
	_cleanup_free_ struct thread **threads = malloc((n->threads.count + 1) * sizeof(*threads));
	size_t count = 0;
	int r = 0;

	if (!threads)
		return error_errno(err, -ENOMEM, "open slices");
	if (ahead && ahead->phase != PHASE_BEGIN && ahead->phase != PHASE_END)
		ahead = NULL;
	TABLE_FOR_EACH(thread_slots, &n->threads, t)
	threads[count++] = t;
	/* Their order in the table is secret. */
	qsort(threads, count, sizeof(*threads), thread_compare);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct thread *t = threads[i];
		bool own = ahead && ahead->pid == t->pid && ahead->tid == t->tid;

		r = thread_reopen(n, t, own ? ahead : NULL, ts, give, userdata, err);
	}
	return r;
}
