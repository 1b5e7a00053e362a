/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Blocks of one size, found by two numbers. They never move, but for rows_remove(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/table.h"
#include "marks/value.h"

/* The most blocks of one set: more keys share the block `rest`. */
#define ROWS_MAX (1U << 20)
/* The same where keys are of two tasks, whose pairs can be many more than the tasks. */
#define ROWS_PAIRS_MAX (1U << 16)
/* A power of two. */
#define ROWS_RECENT 128U

struct row_key {
	uint64_t a, b;
};

/* A hash has 128 bits and depends on a secret: no two texts share it. */
struct row_key row_key_of_text(struct text text);
/* The key of a pair. */
struct row_key row_key_join(struct row_key a, struct row_key b);

struct row_slot {
	uint32_t hash, number; /* of the block, from 1; 0: the slot is free */
};
DECLARE_TABLE(row_slots, struct row_slot);

struct rows {
	size_t size;		   /* bytes of a block and its key */
	struct row_slots slots;	   /* hashed with the process's secret: keys come from the trace */
	char **chunks;		   /* owned */
	void *recent[ROWS_RECENT]; /* blocks that were found last, by low bits of their keys */
	size_t chunk_count, chunk_cap;
	uint32_t max;		   /* ROWS_MAX, unless the owner sets less */
	uint32_t count;		   /* blocks in use; in order of their creation, see rows_at() */
	void *rest;		   /* owned; NULL: no key was refused */
	void (*deinit)(void *row); /* or NULL */
};

/* deinit: called for each block; or NULL. */
void rows_init(struct rows *r, size_t size, void (*deinit)(void *row));
void rows_deinit(struct rows *r);
/* Removes all blocks. */
void rows_clear(struct rows *r);

static inline struct row_key *row_key_of(void *row)
{
	return (struct row_key *)row - 1;
}

static inline bool row_has_key(void *row, struct row_key key)
{
	return row_key_of(row)->a == key.a && row_key_of(row)->b == key.b;
}

static inline void **rows_recent(struct rows *r, struct row_key key)
{
	return &r->recent[(key.a ^ key.b) % ROWS_RECENT];
}

/* rows_get() for blocks that were not found lately. */
void *rows_search(struct rows *r, struct row_key key);

/* The key's block, of zeros if it is new. NULL: out of memory. */
static inline void *rows_get(struct rows *r, struct row_key key)
{
	void *row = *rows_recent(r, key);

	return likely(row && row_has_key(row, key)) ? row : rows_search(r, key);
}
/* Removes a block, for rows without deinit. The last one moves to its place; `rest` stays. */
void rows_remove(struct rows *r, void *row);
/* NULL: there is none. */
void *rows_find(const struct rows *r, struct row_key key);
#define ROWS_PER_CHUNK 64U
/* The block that was created as number i, below count. */
static inline void *rows_at(const struct rows *r, uint32_t i)
{
	return r->chunks[i / ROWS_PER_CHUNK] + i % ROWS_PER_CHUNK * r->size +
	       sizeof(struct row_key);
}

/* How many blocks there are with `rest`, and one of these, `rest` being the last. */
static inline uint32_t rows_all(const struct rows *r)
{
	return r->count + (r->rest != NULL);
}

static inline void *rows_each(const struct rows *r, uint32_t i)
{
	return i < r->count ? rows_at(r, i) : r->rest;
}
