/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads chunks of a capture stream. Everything in a stream is hostile until
 * its hash, its bounds and its meaning are checked: this checks the first two.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "traced/stream.h"

struct chunk {
	enum chunk_type type; /* may be one that this version does not know */
	unsigned flags;
	uint32_t cpu;
	uint64_t offset; /* of the chunk's header in the stream */
	uint32_t length; /* of the payload as stored; of one that lies elsewhere as if it was */
};

struct stream_reader {
	int fd; /* borrowed; seekable */
	uint64_t offset;
	uint64_t size; /* bytes when opened or refreshed */
	uint64_t hole; /* bytes that were given back and passed over */
	/*
	 * Borrowed; 0: all is in the stream. Else it was made of this file, and the offsets of
	 * its chunks mean nothing to people; where sub-buffers lie elsewhere, they lie in this.
	 */
	int pages_fd;
	uint64_t elsewhere; /* bytes of them that were passed */
	/* What came with the last chunk's header: its place, and how much there is of its payload.
	 */
	uint64_t ahead_of;
	size_t ahead_len;
	char ahead[sizeof(struct subbufs_header)];
};

/* Whether these, the first bytes of a file, are a capture stream's. */
bool stream_begins(const void *data, size_t len);
/* -EBADMSG: not a capture stream. */
int stream_reader_init(struct stream_reader *r, int fd, struct error *err);

/* Of a stream that is still being written: looks how long it is by now. */
int stream_reader_refresh(struct stream_reader *r, struct error *err);

/*
 * The next chunk's description, behind a hole if there is one, its header checked for sense but its
 * payload not read. Returns 1; 0 at the end of the stream; -ENODATA if the stream was cut within a
 * chunk (offset then tells where the last whole one ended); -EBADMSG for a header that can't be.
 */
int stream_reader_next(struct stream_reader *r, struct chunk *ret, struct error *err);

/*
 * The payload of a chunk, decompressed, into out (replaced), its hash checked.
 * Safe to call from several threads on one reader, with a buffer each.
 * -EBADMSG: damaged.
 */
int stream_reader_load(const struct stream_reader *r, const struct chunk *chunk, struct buf *out,
		       struct error *err);
/* The same of a payload of at most max bytes, stored and decompressed. -EFBIG: it is longer. */
int stream_reader_load_max(const struct stream_reader *r, const struct chunk *chunk, size_t max,
			   struct buf *out, struct error *err);

/*
 * For chunks that are not to be held whole: verify checks the hash through
 * scratch, a little at a time; load_part then reads len bytes of the stored
 * payload, unchecked, into out (replaced). -EINVAL: the chunk is compressed.
 */
int stream_reader_verify(const struct stream_reader *r, const struct chunk *chunk,
			 struct buf *scratch, struct error *err);
int stream_reader_load_part(const struct stream_reader *r, const struct chunk *chunk, uint32_t from,
			    uint32_t len, struct buf *out, struct error *err);
