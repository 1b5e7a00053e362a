/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/mark_ring_list.h"

#include <string.h>

#include "base/bytes.h"
#include "base/secret_hash.h"
#include "base/vec.h"
#include "traced/mark_record.h"

void mark_ring_list_deinit(struct mark_ring_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		traced__capture__producer__free_unpacked(list->rings[i]->producer, NULL);
		chunk_list_deinit(&list->rings[i]->chunks);
		free(list->rings[i]);
	}
	free(list->rings);
	TABLE_DEINIT(&list->places);
	shares_deinit(&list->shares);
	*list = (struct mark_ring_list){ 0 };
}

DEFINE_TABLE(mark_ring_slots, struct mark_ring_slot, uint32_t, slot->place != 0,
	     hash_u32(slot->ring), slot->ring == key);

static int mark_ring_keep(struct mark_ring_list *list, Traced__Capture__Producer *p, size_t len)
{
	struct mark_ring_slot *slot =
		mark_ring_slots_place(&list->places, hash_u32(p->ring), p->ring);
	const struct share_owner owner = { p->uid, p->pid };
	struct mark_ring *ring;
	int r;

	if (!slot || vec_reserve(list->rings, list->count, list->cap, 1) < 0)
		return -ENOMEM;
	if (p->version > MARK_VERSION || slot->place)
		return -EBADMSG;
	list->shares.max = MARK_RINGS_BYTES;
	r = shares_take(&list->shares, &owner, sizeof(*ring) + sizeof(*p) + len);
	if (r < 0)
		return r;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	ring->producer = p;
	list->rings[list->count++] = ring;
	*slot = (struct mark_ring_slot){ p->ring, list->count };
	list->places.count++;
	return 0;
}

int mark_ring_list_add(struct mark_ring_list *list, ProtobufCAllocator *allocator,
		       const uint8_t *data, size_t len)
{
	Traced__Capture__Producer *p = traced__capture__producer__unpack(allocator, len, data);
	int r = p ? mark_ring_keep(list, p, len) : -EBADMSG;

	if (r < 0 && p)
		traced__capture__producer__free_unpacked(p, allocator);
	return r;
}

int mark_ring_list_chunk(struct mark_ring_list *list, const struct chunk *chunk,
			 const uint8_t *head)
{
	uint32_t number = load_u32(head + offsetof(struct marks_header, ring), false);
	const struct mark_ring_slot *slot =
		mark_ring_slots_find(&list->places, hash_u32(number), number);
	struct mark_ring *ring = slot ? list->rings[slot->place - 1] : NULL;

	if (!ring)
		return list->shares.refused ? 0 : -EBADMSG;
	if (chunk_list_add(&ring->chunks, &(struct chunk_ref){ .offset = chunk->offset,
							       .length = chunk->length }) < 0)
		return -ENOMEM;
	ring->dropped = MAX(ring->dropped, load_u64(head, false));
	return 0;
}

void mark_ring_list_forget(struct mark_ring_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		chunk_list_forget(&list->rings[i]->chunks, SIZE_MAX);
}
