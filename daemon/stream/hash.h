/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The checksum of a chunk, for writer.c and reader.c alone. */
#pragma once

#include <sys/uio.h>

/* The state lies on the stack; its layout is settled since xxHash 0.8. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "traced/stream.h"

/* header, its hash field taken as 0, and then the payload; of either machine order. */
static inline uint64_t chunk_hash(const struct chunk_header *header, const struct iovec *payload,
				  int count)
{
	struct chunk_header h = *header;
	XXH3_state_t state;

	h.hash = 0;
	XXH3_64bits_reset(&state);
	XXH3_64bits_update(&state, &h, sizeof(h));
	for (int i = 0; i < count; i++)
		XXH3_64bits_update(&state, payload[i].iov_base, payload[i].iov_len);
	return XXH3_64bits_digest(&state);
}
