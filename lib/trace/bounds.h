/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bounds on what a stream may claim. A few kilobytes can claim gigabytes, so every kind of chunk
 * has bounds. They are far above what a recorder writes.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "traced/stream.h"

/* Bounds the memory of unpacked messages: an empty one takes 2 bytes in the stream and 100 here. */
struct budget {
	ProtobufCAllocator allocator;
	size_t left; /* bytes, with the heap's overhead */
	int failed;  /* why the last allocation failed: -EFBIG or -ENOMEM; 0: it did not */
};
/* b must not move afterwards. Its allocations may be freed without it. */
void budget_init(struct budget *b, size_t bytes);
/* Returns why a message could not be unpacked; -EBADMSG if the budget was not the reason. */
int budget_error(struct budget *b);

#define BOUNDED_TYPES CHUNK_TYPES_END

struct bounds {
	uint64_t bytes[BOUNDED_TYPES]; /* sum so far */
	uint32_t count[BOUNDED_TYPES];
};
/* The longest payload, stored and expanded. 0: such chunks are not loaded. */
size_t bounds_payload_max(unsigned type);
/* Counts one more payload of len bytes. -EFBIG: the bounds are exceeded. */
int bounds_take(struct bounds *b, unsigned type, size_t len);
/* The type's name in warnings. */
const char *bounds_name(unsigned type);
