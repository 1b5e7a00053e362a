/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The index of a stream's marker rings: who made each one, and where its chunks lie. */
#pragma once

#include "proto/capture.pb-c.h"
#include "stream/reader.h"

#define MARK_RINGS_MAX (1U << 20)

struct mark_chunk {
	uint64_t offset; /* of the chunk's header in the stream */
	uint32_t length;
};

struct mark_ring {
	Traced__Capture__Producer *producer; /* owned */
	struct mark_chunk *chunks;	     /* owned */
	size_t count, cap;
	uint64_t dropped; /* in its life, by its last chunk */
	bool read;	  /* by a struct mark_rings */
};

/* Of a stream, by the number of the ring. */
struct mark_ring_list {
	struct mark_ring **rings; /* owned, each of them */
	size_t count, cap;
};
void mark_ring_list_deinit(struct mark_ring_list *list);
/* A PRODUCER chunk's payload. -EBADMSG, -EFBIG, -ENOMEM. */
int mark_ring_list_add(struct mark_ring_list *list, ProtobufCAllocator *allocator,
		       const uint8_t *data, size_t len);
/* A MARKS chunk, by its first bytes. -EBADMSG: of no ring that was announced. */
int mark_ring_list_chunk(struct mark_ring_list *list, const struct chunk *chunk,
			 const uint8_t *head);

/* Drops the places of all chunks: nobody reads them. */
void mark_ring_list_forget(struct mark_ring_list *list);
