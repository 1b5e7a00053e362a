/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A SUBBUFS chunk whose sub-buffers are in another file. Only writer.c and reader.c use it.
 * Importers make such streams from other programs' files and read them at once. In any other stream
 * these chunks are refused, like all chunks with unknown flags.
 */
#pragma once

#include "traced/stream.h"

#define CHUNK_ELSEWHERE (1 << 15)

/* The stored payload, little-endian. */
struct subbufs_elsewhere {
	struct subbufs_header header;
	uint64_t offset; /* in the other file */
	uint32_t length; /* bytes of whole sub-buffers */
	uint32_t reserved;
};
