/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The places of some chunks of one type in a stream, in its order: 16 bytes per chunk. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct chunk_ref {
	uint64_t offset; /* offset of the chunk's header in the stream */
	uint32_t length; /* stored bytes */
	uint32_t skip;	 /* of sub-buffers: see struct subbufs_header; not yet verified */
};

/* The chunks of one CPU and buffer, or of one ring of marks. */
struct chunk_list {
	struct chunk_ref *refs; /* owned */
	size_t count, cap;
	size_t forgotten; /* refs[0] is the chunk of this number */
};

void chunk_list_deinit(struct chunk_list *l);
/* Appends a chunk. Returns 0 or -ENOMEM. */
int chunk_list_add(struct chunk_list *l, const struct chunk_ref *ref);
/* Chunk number n. NULL: not there yet, or forgotten. Valid until the list changes. */
const struct chunk_ref *chunk_list_get(const struct chunk_list *l, size_t n);
/* Frees the entries of all chunks before number n. */
void chunk_list_forget(struct chunk_list *l, size_t n);
