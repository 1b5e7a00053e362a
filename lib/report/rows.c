/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/secret_hash.h"
#include "base/vec.h"

/* The key is not copied: a copy would be loaded as a vector that was stored in two halves. */
struct row_among {
	const struct rows *rows;
	const struct row_key *key;
	uint32_t hash;
};

/* Only a row with the key's hash is looked at: others would come from memory in vain. */
DEFINE_TABLE(row_slots, struct row_slot, const struct row_among *, slot->number != 0, slot->hash,
	     slot->hash == key->hash &&
		     row_has_key(rows_at(key->rows, slot->number - 1), *key->key));

static struct row_among row_among(const struct rows *r, const struct row_key *key)
{
	return (struct row_among){ r, key, (uint32_t)hash_number(key->a ^ hash_number(key->b)) };
}

struct row_key row_key_of_text(struct text text)
{
	XXH128_hash_t hash = XXH3_128bits_withSeed(text.data ?: "", text.len, hash_secret[0]);

	return (struct row_key){ hash.low64, hash.high64 };
}

struct row_key row_key_join(struct row_key a, struct row_key b)
{
	const uint64_t both[] = { a.a, a.b, b.a, b.b };
	XXH128_hash_t hash = XXH3_128bits_withSeed(both, sizeof(both), hash_secret[0]);

	return (struct row_key){ hash.low64, hash.high64 };
}

void rows_init(struct rows *r, size_t size, void (*deinit)(void *row))
{
	*r = (struct rows){
		.size = sizeof(struct row_key) + ((size + 15) & ~(size_t)15),
		.deinit = deinit,
		.max = ROWS_MAX,
	};
}

void rows_deinit(struct rows *r)
{
	for (uint32_t i = 0; r->deinit && i < r->count; i++)
		r->deinit(rows_at(r, i));
	if (r->deinit && r->rest)
		r->deinit(r->rest);
	for (size_t i = 0; i < r->chunk_count; i++)
		free(r->chunks[i]);
	free(r->chunks);
	free(r->rest);
	TABLE_DEINIT(&r->slots);
}

void rows_clear(struct rows *r)
{
	struct rows empty = { .size = r->size, .max = r->max, .deinit = r->deinit };

	rows_deinit(r);
	*r = empty;
}

static void *rows_new(struct rows *r)
{
	char *chunk;

	if (r->count < r->chunk_count * ROWS_PER_CHUNK)
		return rows_at(r, r->count);
	chunk = calloc(ROWS_PER_CHUNK, r->size);
	if (!chunk || vec_push(r->chunks, r->chunk_count, r->chunk_cap, chunk) < 0) {
		free(chunk);
		return NULL;
	}
	return rows_at(r, r->count);
}

static struct row_slot *rows_slot(const struct rows *r, const struct row_key *key)
{
	const struct row_among among = row_among(r, key);

	return row_slots_find(&r->slots, among.hash, &among);
}

void *rows_find(const struct rows *r, struct row_key key)
{
	const struct row_slot *slot = rows_slot(r, &key);

	return slot ? rows_at(r, slot->number - 1) : NULL;
}

static _noinline_ void *rows_add(struct rows *r, const struct row_among *among)
{
	struct row_slot *slot = row_slots_place(&r->slots, among->hash, among);
	void *row = slot ? rows_new(r) : NULL;

	if (!row)
		return NULL;
	*row_key_of(row) = *among->key;
	r->slots.count++;
	*slot = (struct row_slot){ among->hash, ++r->count };
	return row;
}

static void rows_forget_recent(struct rows *r, void *row)
{
	void **recent = rows_recent(r, *row_key_of(row));

	if (*recent == row)
		*recent = NULL;
}

void rows_remove(struct rows *r, void *row)
{
	void *last = rows_at(r, r->count - 1);
	struct row_slot *slot = row == r->rest ? NULL : rows_slot(r, row_key_of(row));
	struct row_slot *moves = slot ? rows_slot(r, row_key_of(last)) : NULL;

	if (!moves)
		return;
	rows_forget_recent(r, row);
	rows_forget_recent(r, last);
	if (row != last) {
		moves->number = slot->number;
		memcpy(row_key_of(row), row_key_of(last), r->size);
	}
	memset(row_key_of(last), 0, r->size);
	row_slots_remove(&r->slots, slot);
	r->count--;
}

void *rows_search(struct rows *r, struct row_key key)
{
	const struct row_among among = row_among(r, &key);
	const struct row_slot *slot = row_slots_find(&r->slots, among.hash, &among);
	void *row;

	if (!slot && r->count == r->max) {
		if (!r->rest)
			r->rest = calloc(1, r->size);
		return r->rest;
	}
	row = slot ? rows_at(r, slot->number - 1) : rows_add(r, &among);
	*rows_recent(r, key) = row;
	return row;
}
