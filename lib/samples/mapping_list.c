/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "samples/mapping_list.h"

#include <string.h>

#include "base/search.h"
#include "base/vec.h"

#define BLOCK_MAPPINGS 128
/* A mapping that splits another one becomes three. */
#define PIECES_MAX 3
/* A shared list with more blocks is not copied for a change, but becomes the base of a new list. */
#define COPIED_BLOCKS_MAX 8
/* A list with a base and more own mappings is flattened: it gets blocks of its own for all. */
#define OWN_MAPPINGS_MAX (2 * BLOCK_MAPPINGS)

struct block {
	uint32_t refs, count; /* count: at least 1 */
	int32_t pid;	      /* of the process that made it */
	struct code_mapping mappings[BLOCK_MAPPINGS];
};

/* Its own mappings hide those of its base, which never changes and has no base. */
struct mapping_list {
	uint32_t refs;
	uint32_t mappings; /* its own */
	uint32_t count, cap;
	int32_t pid; /* of the process that made it */
	struct block **blocks;
	struct mapping_list *base; /* shared; NULL: none */
	bool stuck;		   /* there was no memory to flatten it */
};

static struct share_owner owner_of(int32_t pid)
{
	return (struct share_owner){ (uint32_t)pid, pid };
}

static uint64_t list_bytes(uint32_t cap)
{
	return sizeof(struct mapping_list) + (uint64_t)cap * sizeof(struct block *);
}

static void block_free(struct block *b, struct shares *shares)
{
	const struct share_owner owner = owner_of(b->pid);

	if (--b->refs)
		return;
	shares_return(shares, &owner, sizeof(*b));
	free(b);
}

static int block_new(struct block **ret, int32_t pid, struct shares *shares)
{
	const struct share_owner owner = owner_of(pid);
	int r = shares_take(shares, &owner, sizeof(**ret));

	if (r < 0)
		return r;
	*ret = malloc(sizeof(**ret));
	if (!*ret) {
		shares_return(shares, &owner, sizeof(**ret));
		return -ENOMEM;
	}
	(*ret)->refs = 1;
	(*ret)->count = 0;
	(*ret)->pid = pid;
	return 0;
}

void mapping_list_free(struct mapping_list *l, struct shares *shares)
{
	struct share_owner owner;

	if (!l || --l->refs)
		return;
	owner = owner_of(l->pid);
	for (uint32_t i = 0; i < l->count; i++)
		block_free(l->blocks[i], shares);
	mapping_list_free(l->base, shares);
	shares_return(shares, &owner, list_bytes(l->cap));
	free(l->blocks);
	free(l);
}

uint32_t mapping_list_count(const struct mapping_list *l)
{
	return l ? l->mappings + mapping_list_count(l->base) : 0;
}

static int list_new(struct mapping_list **ret, int32_t pid, uint32_t cap, struct shares *shares)
{
	const struct share_owner owner = owner_of(pid);
	struct mapping_list *l;
	int r = shares_take(shares, &owner, list_bytes(cap));

	if (r < 0)
		return r;
	l = calloc(1, sizeof(*l));
	if (l)
		l->blocks = calloc(cap, sizeof(struct block *));
	if (!l || !l->blocks) {
		free(l);
		shares_return(shares, &owner, list_bytes(cap));
		return -ENOMEM;
	}
	l->refs = 1;
	l->cap = cap;
	l->pid = pid;
	*ret = l;
	return 0;
}

/* to has room, and no blocks. */
static void list_share_blocks(struct mapping_list *to, const struct mapping_list *from)
{
	for (; to->count < from->count; to->count++) {
		to->blocks[to->count] = from->blocks[to->count];
		to->blocks[to->count]->refs++;
	}
	to->mappings = from->mappings;
}

/* Makes *l the process's own, with room for a block for each piece. */
static int list_own(struct mapping_list **l, int32_t pid, struct shares *shares)
{
	struct mapping_list *from = *l, *to;
	bool shared = from && from->refs > 1;
	bool is_base = shared && !from->base && from->count > COPIED_BLOCKS_MAX;
	uint32_t count = from && !is_base ? from->count : 0;
	int r;

	if (from && !shared && count + PIECES_MAX <= from->cap)
		return 0;
	r = list_new(&to, pid, (count + PIECES_MAX) * 2, shares);
	if (r < 0)
		return r;
	*l = to;
	if (is_base)
		to->base = from;
	if (!from || is_base)
		return 0;
	list_share_blocks(to, from);
	to->base = from->base;
	to->stuck = from->stuck;
	if (to->base)
		to->base->refs++;
	mapping_list_free(from, shares);
	return 0;
}

/* Makes a block of the list its own. */
static int list_own_block(struct mapping_list *l, uint32_t i, struct shares *shares)
{
	struct block *from = l->blocks[i], *to;
	int r;

	if (from->refs == 1)
		return 0;
	r = block_new(&to, l->pid, shares);
	if (r < 0)
		return r;
	to->count = from->count;
	memcpy(to->mappings, from->mappings, from->count * sizeof(*from->mappings));
	block_free(from, shares);
	l->blocks[i] = to;
	return 0;
}

/* Inserts an empty block. The list has room. */
static int list_add_block(struct mapping_list *l, uint32_t at, struct shares *shares)
{
	struct block *b;
	int r = block_new(&b, l->pid, shares);

	if (r < 0)
		return r;
	memmove(&l->blocks[at + 1], &l->blocks[at], (l->count - at) * sizeof(struct block *));
	l->blocks[at] = b;
	l->count++;
	return 0;
}

/* Moves the upper half of a block to a new one behind it. */
static int list_split_block(struct mapping_list *l, uint32_t i, struct shares *shares)
{
	struct block *b = l->blocks[i], *upper;
	int r = list_add_block(l, i + 1, shares);

	if (r < 0)
		return r;
	upper = l->blocks[i + 1];
	upper->count = b->count / 2;
	b->count -= upper->count;
	memcpy(upper->mappings, &b->mappings[b->count], upper->count * sizeof(*b->mappings));
	return 0;
}

static uint32_t list_block_behind(const struct mapping_list *l, uint64_t address)
{
	return lower_bound(i, l->count,
			   l->blocks[i]->mappings[l->blocks[i]->count - 1].end <= address);
}

/* Index of the first mapping that ends after the address. */
static uint32_t block_first_behind(const struct block *b, uint64_t address)
{
	return lower_bound(i, b->count, b->mappings[i].end <= address);
}

/* Index of the first mapping that begins at the address or after it. */
static uint32_t block_first_from(const struct block *b, uint64_t address)
{
	return lower_bound(i, b->count, b->mappings[i].start < address);
}

static void list_drop_blocks(struct mapping_list *l, uint32_t at, uint32_t end,
			     struct shares *shares)
{
	for (uint32_t i = at; i < end; i++) {
		l->mappings -= l->blocks[i]->count;
		block_free(l->blocks[i], shares);
	}
	memmove(&l->blocks[at], &l->blocks[end], (l->count - end) * sizeof(struct block *));
	l->count -= end - at;
}

static int list_remove_from_block(struct mapping_list *l, uint32_t i, uint32_t at, uint32_t end,
				  struct shares *shares)
{
	int r = list_own_block(l, i, shares);
	struct block *b = l->blocks[i];

	if (r < 0)
		return r;
	memmove(&b->mappings[at], &b->mappings[end], (b->count - end) * sizeof(*b->mappings));
	b->count -= end - at;
	l->mappings -= end - at;
	return 0;
}

/* Removes all between two addresses. before, behind: what remains of mappings cut there. */
static int list_remove(struct mapping_list *l, const struct code_mapping *m,
		       struct code_mapping *before, struct code_mapping *behind,
		       struct shares *shares)
{
	int r = 0;

	while (r == 0) {
		uint32_t i = list_block_behind(l, m->start), next = i, at, end;
		const struct block *b = i < l->count ? l->blocks[i] : NULL;

		at = b ? block_first_behind(b, m->start) : 0;
		end = b ? block_first_from(b, m->end) : 0;
		if (end <= at)
			break;
		if (b->mappings[at].start < m->start) {
			*before = b->mappings[at];
			before->end = m->start;
		}
		/* Whole blocks go together. */
		while (!at && next < l->count &&
		       l->blocks[next]->mappings[l->blocks[next]->count - 1].start < m->end)
			b = l->blocks[next++];
		end = next > i ? b->count : end;
		if (b->mappings[end - 1].end > m->end) {
			*behind = b->mappings[end - 1];
			behind->offset += m->end - behind->start;
			behind->start = m->end;
		}
		if (next > i)
			list_drop_blocks(l, i, next, shares);
		else
			r = list_remove_from_block(l, i, at, end, shares);
	}
	return r;
}

/* The list has room for one more block, and nothing at the mapping's addresses. */
static int list_insert(struct mapping_list *l, const struct code_mapping *m, struct shares *shares)
{
	uint32_t i = list_block_behind(l, m->start), at;
	struct block *b;
	int r = l->count ? 0 : list_add_block(l, 0, shares);

	if (r < 0)
		return r;
	i = MIN(i, l->count - 1);
	r = list_own_block(l, i, shares);
	if (r == 0 && l->blocks[i]->count == BLOCK_MAPPINGS) {
		r = list_split_block(l, i, shares);
		i += r == 0 && m->start >= l->blocks[i + 1]->mappings[0].start;
	}
	if (r < 0)
		return r;
	b = l->blocks[i];
	at = block_first_behind(b, m->start);
	memmove(&b->mappings[at + 1], &b->mappings[at], (b->count - at) * sizeof(*b->mappings));
	b->mappings[at] = *m;
	b->count++;
	l->mappings++;
	return 0;
}

/* The list is the process's own, and has room for a block for each piece. */
static int list_replace(struct mapping_list *l, const struct code_mapping *m, uint32_t max,
			struct shares *shares)
{
	struct code_mapping before = { 0 }, behind = { 0 };
	int r = list_remove(l, m, &before, &behind, shares);

	if (r == 0 && l->mappings + PIECES_MAX > max)
		return -ENOSPC;
	if (r == 0 && before.end)
		r = list_insert(l, &before, shares);
	if (r == 0)
		r = list_insert(l, m, shares);
	if (r == 0 && behind.end)
		r = list_insert(l, &behind, shares);
	return r;
}

/* Replaces the base by a copy with the list's own mappings in it, for all who share the list. */
static int list_flatten(struct mapping_list *l, struct shares *shares)
{
	struct mapping_list *to, old = *l;
	int r = list_new(&to, l->pid, l->base->count + (l->mappings + 1) * PIECES_MAX, shares);

	/* To try again for each mapping would copy all blocks each time. */
	l->stuck = r < 0;
	if (r < 0)
		return r;
	list_share_blocks(to, l->base);
	for (uint32_t i = 0; r == 0 && i < l->count; i++)
		for (uint32_t j = 0; r == 0 && j < l->blocks[i]->count; j++)
			r = list_replace(to, &l->blocks[i]->mappings[j], UINT32_MAX, shares);
	if (r == 0) {
		*l = *to;
		l->refs = old.refs;
		*to = old;
		to->refs = 1;
	}
	l->stuck = r < 0;
	mapping_list_free(to, shares);
	return r;
}

struct mapping_list *mapping_list_share(struct mapping_list *l, struct shares *shares)
{
	/* A child would copy its own mappings: flatten earlier. Without memory it remains as it is.
	 */
	if (l->base && !l->stuck && l->mappings > OWN_MAPPINGS_MAX / 2)
		list_flatten(l, shares);
	l->refs++;
	return l;
}

int mapping_list_add(struct mapping_list **l, int32_t pid, const struct code_mapping *m,
		     struct shares *shares)
{
	int r = list_own(l, pid, shares);

	if (r == 0 && (*l)->base && (*l)->mappings > OWN_MAPPINGS_MAX)
		r = (*l)->stuck ? -ENOSPC : list_flatten(*l, shares);
	/* How many of the base are hidden is unknown. */
	if (r == 0 && (*l)->base &&
	    mapping_list_count(*l) + PIECES_MAX > PROCESS_MAPPINGS_MAX + OWN_MAPPINGS_MAX)
		return -ENOSPC;
	return r < 0 ? r : list_replace(*l, m, PROCESS_MAPPINGS_MAX, shares);
}

static const struct code_mapping *list_find(const struct mapping_list *l, uint64_t address)
{
	uint32_t i = list_block_behind(l, address), at;
	const struct block *b = i < l->count ? l->blocks[i] : NULL;

	at = b ? block_first_behind(b, address) : 0;
	return b && b->mappings[at].start <= address ? &b->mappings[at] : NULL;
}

const struct code_mapping *mapping_list_find(const struct mapping_list *l, uint64_t address)
{
	const struct code_mapping *m = l ? list_find(l, address) : NULL;

	return !m && l && l->base ? list_find(l->base, address) : m;
}
