/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The checksum of a chunk, for writer.c and reader.c alone. */
#pragma once

#include <sys/uio.h>

/* The state lies on the stack; its layout is settled since xxHash 0.8. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "traced/stream.h"

/* header, its hash field taken as 0, and then the payload; of either machine order. */
uint64_t chunk_hash(const struct chunk_header *header, const struct iovec *payload, int count);

/* As XXH3_64bits_update, in the widest registers that this machine has. */
void hash_update(XXH3_state_t *state, const void *data, size_t len);
