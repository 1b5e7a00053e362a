/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How much of a stream is believed. A few kilobytes of it can claim gigabytes,
 * so every kind of chunk has bounds. They lie well above what a recorder writes.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "traced/stream.h"

/* Memory that messages may be unpacked into: an empty one takes two bytes of the stream, 100 here.
 */
struct budget {
	ProtobufCAllocator allocator;
	size_t left; /* bytes, the heap's own included */
	int failed;  /* why the allocator last gave nothing: -EFBIG or -ENOMEM; 0: it did not */
};
/* Not to be moved afterwards. What it allocated may be freed without it. */
void budget_init(struct budget *b, size_t bytes);
/* Why a message could not be unpacked: the budget's own reason, or -EBADMSG, as it had none. */
int budget_error(struct budget *b);

#define BOUNDED_TYPES CHUNK_TYPES_END

struct bounds {
	uint64_t bytes[BOUNDED_TYPES]; /* taken so far */
	uint32_t count[BOUNDED_TYPES];
};
/* Of one payload as stored, and as expanded; 0: chunks of this type are not loaded. */
size_t bounds_payload_max(unsigned type);
/* Takes one more payload of len bytes. -EFBIG: there were too many. */
int bounds_take(struct bounds *b, unsigned type, size_t len);
/* What to call them in a warning. */
const char *bounds_name(unsigned type);
