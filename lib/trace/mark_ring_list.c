/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/mark_ring_list.h"

#include <string.h>

#include "base/bytes.h"
#include "base/search.h"
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
	*list = (struct mark_ring_list){ 0 };
}

static size_t mark_ring_position(const struct mark_ring_list *list, uint32_t ring)
{
	size_t n = list->count;

	/* Rings mostly come in order of their numbers. */
	if (n && list->rings[n - 1]->producer->ring < ring)
		return n;
	return lower_bound(i, n, list->rings[i]->producer->ring < ring);
}

int mark_ring_list_add(struct mark_ring_list *list, ProtobufCAllocator *allocator,
		       const uint8_t *data, size_t len)
{
	Traced__Capture__Producer *p;
	struct mark_ring *ring;
	size_t at;

	if (list->count == MARK_RINGS_MAX)
		return -EFBIG;
	if (vec_reserve(list->rings, list->count, list->cap, 1) < 0)
		return -ENOMEM;
	p = traced__capture__producer__unpack(allocator, len, data);
	if (!p)
		return -EBADMSG;
	at = mark_ring_position(list, p->ring);
	if (p->version > MARK_VERSION ||
	    (at < list->count && list->rings[at]->producer->ring == p->ring)) {
		traced__capture__producer__free_unpacked(p, allocator);
		return -EBADMSG;
	}
	ring = calloc(1, sizeof(*ring));
	if (!ring) {
		traced__capture__producer__free_unpacked(p, allocator);
		return -ENOMEM;
	}
	ring->producer = p;
	memmove(&list->rings[at + 1], &list->rings[at], (list->count - at) * sizeof(ring));
	list->rings[at] = ring;
	list->count++;
	return 0;
}

int mark_ring_list_chunk(struct mark_ring_list *list, const struct chunk *chunk,
			 const uint8_t *head)
{
	uint32_t number = load_u32(head + offsetof(struct marks_header, ring), false);
	size_t at = mark_ring_position(list, number);
	struct mark_ring *ring = at < list->count ? list->rings[at] : NULL;

	if (!ring || ring->producer->ring != number)
		return -EBADMSG;
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
