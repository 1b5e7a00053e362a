/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Closes descriptors that another user made, in threads that may hang: closer.c.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* The most descriptors of one message: the kernel's SCM_MAX_FD. */
#define CLOSER_MESSAGE_FDS 253

struct closer;

enum closer_kind {
	CLOSER_FILE,	   /* a received descriptor */
	CLOSER_CONNECTION, /* a unix socket of ours; what waits in it may be descriptors */
};

int closer_new(struct closer **ret);
/* Waits a moment for the threads. Those that hang keep the memory. Returns NULL. */
struct closer *closer_free(struct closer *c);
DEFINE_CLEANUP_FUNC(struct closer *, closer_free);

/*
 * Takes fd; -EBADF: does nothing. Returns -EBADF, to store in its place. Never blocks. c NULL:
 * closes it at once.
 */
int closer_close(struct closer *c, uid_t uid, enum closer_kind kind, int fd);
/*
 * True while this user's descriptors do not close, or too many of all users together: take no more
 * of them. Root is trusted.
 */
bool closer_is_blocked(struct closer *c, uid_t uid);
