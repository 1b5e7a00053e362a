/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Appends chunks to a capture stream, from one thread at a time. After a failed write the writer
 * keeps the error and refuses everything: the stream on disk is valid up to its last whole chunk.
 * -EDQUOT is no failed write: a smaller chunk may still fit. Chunks that close a stream (CLOCKS,
 * STATS, NOTE, END) may use the last STREAM_RESERVE bytes of the limit; others may not.
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
	int fd;		/* borrowed; a file, pipe or socket, blocking */
	uint64_t bytes; /* written so far */
	uint64_t limit; /* most bytes of the stream (-EDQUOT beyond); 0: no limit */
	int failed;	/* first write error, negative errno, or 0 */
};

/*
 * Writes the stream's magic. All functions here return 0 or -errno. -E2BIG: too long for a chunk.
 */
int stream_writer_init(struct stream_writer *w, int fd, uint64_t limit);

int stream_write(struct stream_writer *w, enum chunk_type type, const void *payload, size_t len);
/* Like stream_write(), for up to STREAM_IOV_MAX pieces. */
int stream_write_pieces(struct stream_writer *w, enum chunk_type type, const struct iovec *pieces,
			int count);
/* Like stream_write(), compressed with zstd if that is smaller. */
int stream_write_packed(struct stream_writer *w, enum chunk_type type, const void *payload,
			size_t len);
/* Writes a protobuf-c message as payload. */
int stream_write_message(struct stream_writer *w, enum chunk_type type,
			 const ProtobufCMessage *message);
/* Writes sample records of one CPU, from up to STREAM_IOV_MAX pieces. */
int stream_write_samples(struct stream_writer *w, uint32_t cpu, const struct iovec *pieces,
			 int count);
/*
 * Writes sub-buffers of one CPU, from up to STREAM_IOV_MAX pieces. Their total length must be a
 * multiple of the sub-buffer size.
 */
int stream_write_subbufs(struct stream_writer *w, uint32_t cpu, enum subbufs_buffer buffer,
			 uint32_t skip, const struct iovec *subbufs, int count);
/* Like stream_write_subbufs(), but the sub-buffers stay in another file, which readers need. */
int stream_write_elsewhere(struct stream_writer *w, uint32_t cpu, enum subbufs_buffer buffer,
			   uint64_t offset, uint32_t length);

/* Makes a chunk's header for a caller that writes it itself. Payload and padding follow it. */
struct chunk_header stream_chunk_header(enum chunk_type type, unsigned flags, uint32_t cpu,
					const struct iovec *payload, int count);
/* Length of the padding in bytes. */
static inline size_t stream_padding(size_t length)
{
	return -length % CHUNK_ALIGN;
}
