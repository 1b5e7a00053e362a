/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parts of a chunk that only writer.c and reader.c use: its checksum, payloads in other files. */
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

/*
 * Flag of a SUBBUFS chunk whose sub-buffers are in another file. Importers make such streams from
 * other programs' files and read them at once. In any other stream these chunks are refused, like
 * all chunks with unknown flags.
 */
#define CHUNK_ELSEWHERE (1 << 15)

/* The stored payload of such a chunk, little-endian. */
struct subbufs_elsewhere {
	struct subbufs_header header;
	uint64_t offset; /* in the other file */
	uint32_t length; /* bytes of whole sub-buffers */
	uint32_t reserved;
};
