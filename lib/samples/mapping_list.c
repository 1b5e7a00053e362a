/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "samples/mapping_list.h"

#include <string.h>

#include "base/search.h"
#include "base/vec.h"

#define BLOCK_MAPPINGS 128
/* A mapping that splits another one becomes three. */
#define PIECES_MAX 3

struct block {
	uint32_t refs, count; /* count: at least 1 */
	int32_t pid;	      /* of the process that made it */
	struct code_mapping mappings[BLOCK_MAPPINGS];
};

struct mapping_list {
	uint32_t refs;
	uint32_t mappings;
	uint32_t count, cap;
	int32_t pid; /* of the process that made it */
	struct block **blocks;
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

struct mapping_list *mapping_list_share(struct mapping_list *l)
{
	if (l)
		l->refs++;
	return l;
}

void mapping_list_free(struct mapping_list *l, struct shares *shares)
{
	struct share_owner owner;

	if (!l || --l->refs)
		return;
	owner = owner_of(l->pid);
	for (uint32_t i = 0; i < l->count; i++)
		block_free(l->blocks[i], shares);
	shares_return(shares, &owner, list_bytes(l->cap));
	free(l->blocks);
	free(l);
}

uint32_t mapping_list_count(const struct mapping_list *l)
{
	return l ? l->mappings : 0;
}

/* Makes *l the process's own, with room for a block for each piece. */
static int list_own(struct mapping_list **l, int32_t pid, struct shares *shares)
{
	const struct share_owner owner = owner_of(pid);
	struct mapping_list *from = *l, *to;
	uint32_t count = from ? from->count : 0, cap = (count + PIECES_MAX) * 2;
	int r;

	if (from && from->refs == 1 && from->count + PIECES_MAX <= from->cap)
		return 0;
	r = shares_take(shares, &owner, list_bytes(cap));
	if (r < 0)
		return r;
	to = calloc(1, sizeof(*to));
	if (to)
		to->blocks = calloc(cap, sizeof(struct block *));
	if (!to || !to->blocks) {
		free(to);
		shares_return(shares, &owner, list_bytes(cap));
		return -ENOMEM;
	}
	to->refs = 1;
	to->cap = cap;
	to->pid = pid;
	for (; to->count < count; to->count++) {
		to->blocks[to->count] = from->blocks[to->count];
		to->blocks[to->count]->refs++;
	}
	to->mappings = mapping_list_count(from);
	mapping_list_free(from, shares);
	*l = to;
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

int mapping_list_add(struct mapping_list **l, int32_t pid, const struct code_mapping *m,
		     struct shares *shares)
{
	struct code_mapping before = { 0 }, behind = { 0 };
	int r = list_own(l, pid, shares);

	if (r == 0)
		r = list_remove(*l, m, &before, &behind, shares);
	if (r == 0 && (*l)->mappings + PIECES_MAX > PROCESS_MAPPINGS_MAX)
		return -ENOSPC;
	if (r == 0 && before.end)
		r = list_insert(*l, &before, shares);
	if (r == 0)
		r = list_insert(*l, m, shares);
	if (r == 0 && behind.end)
		r = list_insert(*l, &behind, shares);
	return r;
}

const struct code_mapping *mapping_list_find(const struct mapping_list *l, uint64_t address)
{
	uint32_t i = l ? list_block_behind(l, address) : 0, at;
	const struct block *b = l && i < l->count ? l->blocks[i] : NULL;

	at = b ? block_first_behind(b, address) : 0;
	return b && b->mappings[at].start <= address ? &b->mappings[at] : NULL;
}
