/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's end of a ring that a stranger's thread writes (traced/mark_ring.h). The
 * memory is the stranger's, and may change at any moment to anything, but can't shrink:
 * the memfd is sealed. Its first page is mapped; the records are read, as a read of a
 * hole gives zeros where a mapping would cost us memory.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "traced/mark_ring.h"

struct marks_ring {
	int fd; /* owned */
	struct mark_ring *shared;
	uint32_t header, size, mask; /* bytes; header is what is mapped */
	uint32_t tail;		     /* ours: the shared one is for the thread only */
	uint64_t dropped;	     /* marks, in the ring's life */
};

/*
 * Takes fd over, whatever comes of it. -EINVAL: the message's sizes can't be;
 * -EPERM: no sealed memfd, or none that we may map.
 */
int marks_ring_open(struct marks_ring *ret, int fd, const struct marks_message *m,
		    struct error *err);
void marks_ring_close(struct marks_ring *r);

/* Bytes that wait. -EBADMSG: its head can't be. */
int64_t marks_ring_waiting(const struct marks_ring *r);
/*
 * Appends what waits to out and gives its room back. Brings dropped up to date. Returns
 * the bytes, or -errno: -EBADMSG as above.
 */
int64_t marks_ring_take(struct marks_ring *r, struct buf *out);
/* What waits is nobody's. */
int marks_ring_discard(struct marks_ring *r);
/* True once the thread has ended: what waits then is the last. */
bool marks_ring_closed(const struct marks_ring *r);
