/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Appends chunks to a capture stream. One thread at a time. After a failed
 * write the writer refuses everything but keeps the error: the stream on disk
 * is valid up to its last whole chunk. -EDQUOT is no failed write: a smaller
 * chunk may still fit, and what closes a stream (CLOCKS, STATS, NOTE, END) may
 * use the last STREAM_RESERVE bytes of the limit, which others may not.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/error.h"
#include "traced/stream.h"

#define STREAM_RESERVE (64U << 10)
#define STREAM_IOV_MAX 256

struct stream_writer {
	int fd;		/* borrowed; a file, a pipe or a socket, blocking */
	uint64_t bytes; /* written so far */
	uint64_t limit; /* no stream beyond this many bytes (-EDQUOT); 0: none */
	int failed;	/* the first write error, negative errno, or 0 */
};

/* Writes the stream's magic. All here return 0 or -errno; -E2BIG: too long for a chunk. */
int stream_writer_init(struct stream_writer *w, int fd, uint64_t limit);

int stream_write(struct stream_writer *w, enum chunk_type type, const void *payload, size_t len);
/* As stream_write, of several pieces, at most STREAM_IOV_MAX. */
int stream_write_pieces(struct stream_writer *w, enum chunk_type type, const struct iovec *pieces,
			int count);
/* As stream_write, compressed with zstd when that makes it smaller. */
int stream_write_packed(struct stream_writer *w, enum chunk_type type, const void *payload,
			size_t len);
/* A protobuf-c message as payload. */
int stream_write_message(struct stream_writer *w, enum chunk_type type,
			 const ProtobufCMessage *message);
/* Records of samples of one CPU, gathered from wherever they lie. At most STREAM_IOV_MAX pieces. */
int stream_write_samples(struct stream_writer *w, uint32_t cpu, const struct iovec *pieces,
			 int count);
/*
 * Sub-buffers of one CPU, gathered from wherever they lie; their lengths
 * together must be a multiple of the sub-buffer size. At most STREAM_IOV_MAX pieces.
 */
int stream_write_subbufs(struct stream_writer *w, uint32_t cpu, enum subbufs_buffer buffer,
			 uint32_t skip, const struct iovec *subbufs, int count);
/*
 * The same of sub-buffers that stay where they are, in another file, which the reader has to be
 * given: such a stream is of no use without it.
 */
int stream_write_elsewhere(struct stream_writer *w, uint32_t cpu, enum subbufs_buffer buffer,
			   uint64_t offset, uint32_t length);

/* The chunk's header, for who puts it somewhere else; the payload and its padding follow it. */
struct chunk_header stream_chunk_header(enum chunk_type type, unsigned flags, uint32_t cpu,
					const struct iovec *payload, int count);
/* Bytes of the padding. */
static inline size_t stream_padding(size_t length)
{
	return -length % CHUNK_ALIGN;
}
