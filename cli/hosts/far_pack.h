/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The capture's way from a host to `tracectl -H`: compressed by zstd if the near side asks for it,
 * while it is made.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Far side. Starts a process that compresses into *fd what it gets, and sends what it has as soon
 * as nothing more is there. *fd becomes the pipe to it. Without zstd *ret is 0, and *fd is as
 * before.
 */
int far_pack_start(pid_t *ret, int *fd, struct error *err);
/* Waits until it has sent all. Call once all others have closed the pipe. */
void far_pack_end(pid_t *packer);
/* Nobody wants the rest. */
void far_pack_drop(pid_t *packer);

#define FAR_PIECE (64U << 10)
/* Near side: bounded memory and, call by call, bounded work, whatever the host sends. */
struct far_unpack;
/* True if a capture that begins with this byte is compressed. */
bool far_unpack_begins(char first);
/* -ENOMEM. */
int far_unpack_new(struct far_unpack **ret);
struct far_unpack *far_unpack_free(struct far_unpack *u);
/* Whether far_unpack_read() may have something before the next far_unpack_add(). */
bool far_unpack_is_pending(const struct far_unpack *u);
/* len: at most FAR_PIECE. */
void far_unpack_add(struct far_unpack *u, const char *data, size_t len);
/* Returns the number of bytes, or -EBADMSG. */
ssize_t far_unpack_read(struct far_unpack *u, char *out, size_t len);
/* Whether what was read ends where the host ended it. */
bool far_unpack_is_whole(const struct far_unpack *u);
