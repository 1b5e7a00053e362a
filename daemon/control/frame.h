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

#include "util/buf.h"
#include "util/error.h"

#define CONTROL_VERSION 1
#define CONTROL_FRAME_MAX (4U << 20)  /* bytes of one message */
#define CONTROL_QUEUE_MAX (16U << 20) /* bytes waiting to be sent to one peer */
#define CONTROL_FDS_MAX 2	      /* descriptors on one frame */
#define CONTROL_SOCKET "/run/traced/traced.sock"

/* One end's buffers. */
struct frame_io {
	int fd; /* borrowed */
	struct buf in, out;
	int fds[CONTROL_FDS_MAX]; /* came with the frame being received; owned */
	size_t fd_count;
};

void frame_io_init(struct frame_io *io, int fd);
void frame_io_deinit(struct frame_io *io);

/* Queues a message; fds are duplicated. -ENOBUFS: the peer doesn't read. */
int frame_queue(struct frame_io *io, const ProtobufCMessage *message, const int *fds,
		size_t fd_count);
/* Sends what it can. 1: something is left; 0: all sent; or -errno. */
int frame_flush(struct frame_io *io);

/*
 * Reads what there is and gives the next whole frame's payload: 1; 0: none
 * yet; -ECONNRESET: the peer is gone; -EMSGSIZE, -EBADMSG: it breaks the rules.
 * payload stays valid until the next call; the descriptors go to the caller.
 */
int frame_receive(struct frame_io *io, const uint8_t **ret_payload, size_t *ret_len,
		  int fds[static CONTROL_FDS_MAX], size_t *ret_fd_count);
