/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Frames on the control socket: a 32-bit little-endian length and one protobuf
 * message; descriptors ride (SCM_RIGHTS) on the frame's first byte. Non-blocking
 * on both ends; partial frames are kept until the rest comes.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define CONTROL_VERSION 1
#define CONTROL_FRAME_MAX (4U << 20)  /* bytes of one message */
#define CONTROL_QUEUE_MAX (16U << 20) /* bytes waiting to be sent to one peer */
#define CONTROL_FDS_MAX 18	      /* descriptors on one frame */
#define CONTROL_SOCKET TRACED_RUN_DIR "/traced.sock"
#define CONTROL_GROUP "traced" /* whose members may use it */

/* Descriptors that wait for the frame that they ride on. */
struct frame_fds {
	size_t offset; /* of that frame in out */
	int fds[CONTROL_FDS_MAX];
	size_t count;
};

/* One end's buffers. */
struct frame_io {
	int fd;		/* borrowed */
	size_t max_in;	/* bytes of a received message; CONTROL_FRAME_MAX unless lowered */
	struct buf in;	/* the frame being received, its length included */
	struct buf out; /* frames to be sent; the first `sent` bytes are gone */
	size_t sent;
	bool delivered;		  /* `in` is a whole frame that the caller has seen */
	int fds[CONTROL_FDS_MAX]; /* came with the frame being received; owned */
	size_t fd_count;
	struct frame_fds *pending; /* owned, in order of offset */
	size_t pending_count;
};

void frame_io_init(struct frame_io *io, int fd);
void frame_io_deinit(struct frame_io *io);

/* Queues a message; fds are duplicated. -ENOBUFS: the peer doesn't read; -EMSGSIZE: too long. */
int frame_queue(struct frame_io *io, const ProtobufCMessage *message, const int *fds,
		size_t fd_count);
/* Bytes queued and not sent. */
static inline size_t frame_queued(const struct frame_io *io)
{
	return io->out.len - io->sent;
}
/* Sends what it can. 1: something is left; 0: all sent; or -errno. */
int frame_flush(struct frame_io *io);

/*
 * Reads what there is and gives the next whole frame's payload: 1; 0: none
 * yet; -ECONNRESET: the peer is gone; -EMSGSIZE, -EBADMSG: it breaks the rules.
 * payload stays valid until the next call; the descriptors go to the caller.
 */
int frame_receive(struct frame_io *io, const uint8_t **ret_payload, size_t *ret_len,
		  int fds[static CONTROL_FDS_MAX], size_t *ret_fd_count);
