/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/known.h"

#include <xxhash.h>

#include "base/cleanup.h"

/* Half of the places are free: only keys that were made for it come so far from home. */
#define PROBES_MAX 128
/* Of each, beside its bytes: its places in the table, and the allocator's share. */
#define OVERHEAD 128

struct known {
	uint64_t key;
	void *data; /* owned; NULL: a free place */
	size_t size;
};

static uint32_t home_of(uint64_t key, uint32_t cap)
{
	return (uint32_t)XXH3_64bits(&key, sizeof(key)) & (cap - 1);
}

/* Its place, or the free one that it would have; NULL: there is none. */
static struct known *place(struct known *slots, uint32_t cap, uint64_t key)
{
	uint32_t at = cap ? home_of(key, cap) : 0;

	for (uint32_t i = 0; i < MIN(cap, (uint32_t)PROBES_MAX); i++) {
		struct known *k = &slots[(at + i) & (cap - 1)];

		if (!k->data || k->key == key)
			return k;
	}
	return NULL;
}

static void forget(struct known *k, struct known_room *room)
{
	if (k->data)
		room->used -= k->size;
	free(k->data);
	k->data = NULL;
}

void known_deinit(struct known_table *t, struct known_room *room)
{
	for (uint32_t i = 0; i < t->cap; i++)
		forget(&t->slots[i], room);
	free(t->slots);
	*t = (struct known_table){ 0 };
}

void *known_find(const struct known_table *t, uint64_t key)
{
	struct known *k = place(t->slots, t->cap, key);

	return k ? k->data : NULL;
}

static int grow(struct known_table *t, struct known_room *room)
{
	uint32_t cap = MAX(t->cap * 2, UINT32_C(64));
	struct known *slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	t->count = 0;
	for (uint32_t i = 0; i < t->cap; i++) {
		struct known *from = &t->slots[i], *to;

		if (!from->data)
			continue;
		to = place(slots, cap, from->key);
		if (to)
			*to = *from;
		else
			forget(from, room);
		t->count += to != NULL;
	}
	free(t->slots);
	t->slots = slots;
	t->cap = cap;
	return 0;
}

void *known_add(struct known_table *t, struct known_room *room, uint64_t key, size_t size)
{
	struct known *k;

	known_drop(t, room, key);
	if (size > KNOWN_BYTES_MAX || room->used + size + OVERHEAD > KNOWN_BYTES_MAX)
		return NULL;
	if (t->count * 2 >= t->cap && grow(t, room) < 0)
		return NULL;
	k = place(t->slots, t->cap, key);
	if (!k)
		return NULL;
	*k = (struct known){ .key = key, .data = calloc(1, size), .size = size + OVERHEAD };
	if (!k->data)
		return NULL;
	room->used += k->size;
	t->count++;
	return k->data;
}

void known_drop(struct known_table *t, struct known_room *room, uint64_t key)
{
	struct known *gone = place(t->slots, t->cap, key);
	uint32_t mask = t->cap - 1, hole, at;

	if (!gone || !gone->data)
		return;
	forget(gone, room);
	t->count--;
	/* What came behind it only because it was there closes the gap. */
	hole = (uint32_t)(gone - t->slots);
	for (at = (hole + 1) & mask; t->slots[at].data; at = (at + 1) & mask) {
		uint32_t home = home_of(t->slots[at].key, t->cap);

		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		t->slots[hole] = t->slots[at];
		t->slots[at].data = NULL;
		hole = at;
	}
}
