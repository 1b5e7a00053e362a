/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rings of marks of a stream: the index pass remembers whose they are and where
 * their chunks lie; then they are read side by side, by the time at which
 * each mark was written, in the trace clock.
 *
 * Memory: a window of each ring that is being read, no more than
 * MARK_RINGS_MEMORY together; a ring is opened when its first mark is due.
 */
#pragma once

#include "marks/decode.h"
#include "stream/reader.h"
#include "trace/mark_ring_list.h"
#include "trace/trace_info.h"

#define MARK_RINGS_MEMORY (192U << 20)

struct mark_rings;
/* Borrows all. What lies before limit is given out; UINT64_MAX: all. */
int mark_rings_new(struct mark_rings **ret, struct mark_ring_list *list,
		   const struct trace_info *info, const struct stream_reader *reader,
		   uint64_t limit);
struct mark_rings *mark_rings_free(struct mark_rings *m);
DEFINE_CLEANUP_FUNC(struct mark_rings *, mark_rings_free);

/*
 * 1: ret is the next mark, order the time by which it comes (of a complete event its end); 0:
 * the end; -errno. Valid until the next call.
 */
int mark_rings_next(struct mark_rings *m, struct mark *ret, uint64_t *ret_order, struct error *err);

/*
 * At the end of what was given out: the list has grown, and there is more, up to another limit.
 * 0, -ENOMEM.
 */
int mark_rings_extend(struct mark_rings *m, uint64_t limit);
/* Marks from behind that time of the trace clock can't be. */
void mark_rings_set_latest(struct mark_rings *m, uint64_t latest);
/* The offset in the stream before which nothing is needed any more. */
uint64_t mark_rings_needs(const struct mark_rings *m);

struct mark_rings_sum {
	size_t rings;
	uint64_t lost;		 /* marks that found no room in their ring */
	uint64_t damaged;	 /* chunks that are not as they were recorded */
	uint64_t garbled;	 /* those that a program filled with something else, in part */
	uint64_t impossible;	 /* marks of a time behind the recording's end: left out */
	uint64_t labels_refused; /* names that were never told, or too many */
	uint64_t untied;	 /* rings whose clock nothing ties to the trace clock */
	uint64_t bound;		 /* of the conversion of their times, ns */
};
void mark_rings_sum(const struct mark_rings *m, struct mark_rings_sum *ret);
