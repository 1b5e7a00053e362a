/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Frames on the control socket: a 32-bit little-endian length, then a protobuf message. Descriptors
 * are sent (SCM_RIGHTS) with the frame's first byte. Both ends are non-blocking and keep partial
 * frames.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/closer.h"
#include "base/error.h"

#define CONTROL_VERSION 3
#define CONTROL_FRAME_MAX (4U << 20)  /* bytes of one message */
#define CONTROL_QUEUE_MAX (16U << 20) /* bytes queued for one peer */
#define CONTROL_FDS_MAX 18	      /* descriptors per frame */
#define CONTROL_SOCKET TRACED_RUN_DIR "/traced.sock"
#define CONTROL_GROUP "traced" /* its members may use the socket */

/* Descriptors to send with their frame; borrowed. */
struct frame_fds {
	size_t offset; /* of the frame in out */
	int fds[CONTROL_FDS_MAX];
	size_t count;
};

/* Buffers of one end. */
struct frame_io {
	int fd;		       /* borrowed */
	struct closer *closer; /* of received descriptors; borrowed; NULL: they are trusted */
	uid_t account;	       /* the peer's, for the closer */
	size_t max_in;	/* limit of a received message in bytes; CONTROL_FRAME_MAX unless lowered */
	struct buf in;	/* the frame being received, with its length */
	struct buf out; /* frames to send; the first `sent` bytes are done */
	size_t sent;
	bool delivered;		  /* `in` is a whole frame that the caller has */
	int fds[CONTROL_FDS_MAX]; /* of the frame being received; owned */
	size_t fd_count;
	struct frame_fds *pending; /* owned, sorted by offset */
	size_t pending_count;
};

void frame_io_init(struct frame_io *io, int fd);
void frame_io_deinit(struct frame_io *io);

/*
 * Queues a message; fds must stay open until it is sent. -ENOBUFS: the peer does not read.
 * -EMSGSIZE: too long.
 */
int frame_queue(struct frame_io *io, const ProtobufCMessage *message, const int *fds,
		size_t fd_count);
/* Bytes queued but not sent. */
static inline size_t frame_queued(const struct frame_io *io)
{
	return io->out.len - io->sent;
}
/* Sends as much as possible. Returns 1 if something is left, 0 if not, or -errno. */
int frame_flush(struct frame_io *io);

/*
 * Reads available data. Returns 1 and the next whole frame's payload, or 0 if it is incomplete.
 * -ECONNRESET: the peer closed. -EMSGSIZE, -EBADMSG: it broke the protocol. payload is valid until
 * the next call. The caller owns the descriptors.
 */
int frame_receive(struct frame_io *io, const uint8_t **ret_payload, size_t *ret_len,
		  int fds[static CONTROL_FDS_MAX], size_t *ret_fd_count);
