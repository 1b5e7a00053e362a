/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Index of a stream's mark rings: the producer of each, and the places of its chunks. */
#pragma once

#include "base/table.h"
#include "proto/capture.pb-c.h"
#include "stream/reader.h"
#include "trace/chunk_list.h"
#include "trace/shares.h"

/* Bytes of all rings and their producers. */
#define MARK_RINGS_BYTES (128U << 20)

struct mark_ring {
	Traced__Capture__Producer *producer; /* owned */
	struct chunk_list chunks;
	uint64_t dropped; /* marks in the ring's life, as of its last chunk */
	bool read;	  /* a struct mark_rings reads it */
};

struct mark_ring_slot {
	uint32_t ring, place; /* its number; 1 + its index in the list, 0: a free slot */
};
DECLARE_TABLE(mark_ring_slots, struct mark_ring_slot);

/* In the order of the stream, which is that of the rings' numbers. */
struct mark_ring_list {
	struct mark_ring **rings; /* array and rings owned */
	uint32_t count, cap;
	struct mark_ring_slots places;
	struct shares shares;
};
void mark_ring_list_deinit(struct mark_ring_list *list);
/* Adds a PRODUCER chunk. -EBADMSG, -ENOSPC: its program has too many rings; -ENOMEM. */
int mark_ring_list_add(struct mark_ring_list *list, ProtobufCAllocator *allocator,
		       const uint8_t *data, size_t len);
/*
 * Adds the place of a MARKS chunk; head: its first bytes. Marks of a ring that found no room are
 * left out. -EBADMSG: the ring was not announced.
 */
int mark_ring_list_chunk(struct mark_ring_list *list, const struct chunk *chunk,
			 const uint8_t *head);

/* Frees the places of all chunks if nothing reads them. */
void mark_ring_list_forget(struct mark_ring_list *list);
