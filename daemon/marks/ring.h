/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon's end of a ring that an untrusted thread writes (traced/mark_ring.h). */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "traced/mark_ring.h"

struct marks_ring {
	int fd; /* owned */
	struct mark_ring *shared;
	uint32_t header, size, mask; /* bytes; header: the mapped part */
	uint32_t tail;		     /* the trusted copy; the shared one is only for the thread */
	uint64_t dropped;	     /* marks dropped since the ring was opened */
};

/*
 * Takes fd if it succeeds. -EINVAL: invalid sizes in the message; -EPERM: not a sealed memfd, or
 * mapping it is not permitted. Nothing that an untrusted fd can be blocks it.
 */
int marks_ring_open(struct marks_ring *ret, int fd, const struct marks_message *m,
		    struct error *err);
/* Unmaps the ring. Returns its descriptor, which may hold gigabytes: the caller closes it. */
int marks_ring_close(struct marks_ring *r);

/* Bytes in the ring. -EBADMSG: invalid head. */
int64_t marks_ring_waiting(const struct marks_ring *r);
/*
 * Appends the ring's bytes to out, frees their room, and updates dropped. Returns the number of
 * bytes, or -errno: -EBADMSG as above.
 */
int64_t marks_ring_take(struct marks_ring *r, struct buf *out);
/* Drops the ring's bytes. */
int marks_ring_discard(struct marks_ring *r);
/* True once the thread has ended: nothing is added after that. */
bool marks_ring_closed(const struct marks_ring *r);
