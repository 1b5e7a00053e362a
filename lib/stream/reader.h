/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads chunks of a capture stream. Everything in a stream is hostile until its hash, its bounds
 * and its meaning are checked. This file checks the first two.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "traced/stream.h"

struct chunk {
	enum chunk_type type; /* may be unknown to this version */
	unsigned flags;
	uint32_t cpu;
	uint64_t offset; /* of the chunk's header in the stream */
	uint32_t length; /* bytes of the stored payload, also if it is in another file */
};

struct stream_reader {
	int fd; /* borrowed; seekable */
	uint64_t offset;
	uint64_t size; /* bytes when opened or last refreshed */
	uint64_t hole; /* freed bytes that were skipped */
	/*
	 * Borrowed. 0: everything is in the stream. Otherwise the stream was made from this file,
	 * which may hold the sub-buffers, and chunk offsets have no meaning to people.
	 */
	int pages_fd;
	uint64_t elsewhere; /* bytes of sub-buffers in pages_fd that were passed */
	/*
	 * Data read along with the last chunk's header: that chunk's offset, and the bytes of its
	 * payload.
	 */
	uint64_t ahead_of;
	size_t ahead_len;
	char ahead[sizeof(struct subbufs_header)];
};

/* True if these first bytes of a file start a capture stream. */
bool stream_begins(const void *data, size_t len);
/* -EBADMSG: not a capture stream. */
int stream_reader_init(struct stream_reader *r, int fd, struct error *err);

/* Updates the size of a stream that is still being written. */
int stream_reader_refresh(struct stream_reader *r, struct error *err);

/*
 * Describes the next chunk, skipping a hole. Validates the header but does not read the payload.
 * Returns 1, or 0 at the end of the stream. -ENODATA: the stream was cut within a chunk; offset is
 * the end of the last whole one. -EBADMSG: invalid header.
 */
int stream_reader_next(struct stream_reader *r, struct chunk *ret, struct error *err);

/* True of sub-buffers with events; names of tasks are none. */
bool stream_reader_has_events(const struct stream_reader *r, const struct chunk *chunk);

/*
 * Loads a chunk's payload, decompressed, into out (replaced), and checks its hash. Threads may
 * share the reader if each has its own buffer. -EBADMSG: damaged.
 */
int stream_reader_load(const struct stream_reader *r, const struct chunk *chunk, struct buf *out,
		       struct error *err);
/* Like stream_reader_load(), but at most max bytes, stored and decompressed. -EFBIG: longer. */
int stream_reader_load_max(const struct stream_reader *r, const struct chunk *chunk, size_t max,
			   struct buf *out, struct error *err);

/*
 * For chunks too long to hold. stream_reader_verify() checks the hash, piece by piece through
 * scratch. stream_reader_load_part() then reads len bytes of the stored payload, unchecked, into
 * out (replaced). -EINVAL: the chunk is compressed.
 */
int stream_reader_verify(const struct stream_reader *r, const struct chunk *chunk,
			 struct buf *scratch, struct error *err);
int stream_reader_load_part(const struct stream_reader *r, const struct chunk *chunk, uint32_t from,
			    uint32_t len, struct buf *out, struct error *err);
