/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A chunk's checksum. Only writer.c and reader.c use it. */
#pragma once

#include <sys/uio.h>

/* The state is on the stack; its layout is fixed since xxHash 0.8. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "traced/stream.h"

/* Hashes the header, with its hash field as 0, then the payload; the same on any byte order. */
uint64_t chunk_hash(const struct chunk_header *header, const struct iovec *payload, int count);

/* XXH3_64bits_update() with the widest registers of this machine. */
void hash_update(XXH3_state_t *state, const void *data, size_t len);
