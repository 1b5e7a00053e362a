/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A SUBBUFS chunk whose sub-buffers lie in another file, for writer.c and reader.c alone. Such
 * streams are made of other programs' files, to be read at once and by their maker: of all others
 * these chunks are refused, as all with flags that are not known.
 */
#pragma once

#include "traced/stream.h"

#define CHUNK_ELSEWHERE (1 << 15)

/* The payload as stored, little-endian. */
struct subbufs_elsewhere {
	struct subbufs_header header;
	uint64_t offset; /* in that file */
	uint32_t length; /* bytes, of whole sub-buffers */
	uint32_t reserved;
};
