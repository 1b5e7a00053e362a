/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the rings of marks of a stream. The index pass notes each ring's owner and chunks. Then all
 * rings are merged by the time at which each mark was written, in the trace clock.
 *
 * Memory: one window per open ring, MARK_RINGS_MEMORY in total. A ring is opened when its first
 * mark is due.
 */
#pragma once

#include "marks/decode.h"
#include "stream/reader.h"
#include "trace/mark_ring_list.h"
#include "trace/trace_info.h"

#define MARK_RINGS_MEMORY (192U << 20)

struct mark_rings;
/* Borrows all. Only chunks before offset `limit` are read; UINT64_MAX: all. */
int mark_rings_new(struct mark_rings **ret, struct mark_ring_list *list,
		   const struct trace_info *info, const struct stream_reader *reader,
		   uint64_t limit);
struct mark_rings *mark_rings_free(struct mark_rings *m);
DEFINE_CLEANUP_FUNC(struct mark_rings *, mark_rings_free);

/*
 * 1: ret is the next mark, ret_order its sort time (of a complete event: its end). 0: the end;
 * -errno. ret is valid until the next call.
 */
int mark_rings_next(struct mark_rings *m, struct mark *ret, uint64_t *ret_order, struct error *err);

/* Continues after the end, up to a new limit, once the list has grown. 0 or -ENOMEM. */
int mark_rings_extend(struct mark_rings *m, uint64_t limit);
/* Marks later than this time (trace clock) are dropped as impossible. */
void mark_rings_set_latest(struct mark_rings *m, uint64_t latest);
/* Stream offset below which data is no longer needed. */
uint64_t mark_rings_needs(const struct mark_rings *m);

struct mark_rings_sum {
	size_t rings;
	uint64_t lost;		 /* marks dropped because their ring was full */
	uint64_t overstated;	 /* rings that claim more losses than are possible */
	uint64_t damaged;	 /* chunks with a wrong checksum */
	uint64_t garbled;	 /* chunks with invalid records */
	uint64_t impossible;	 /* marks with times after the recording's end: dropped */
	uint64_t unknown;	 /* marks whose phase the format does not know: dropped */
	uint64_t labels_refused; /* uses of labels that were undefined or above the bound */
	uint64_t untied;	 /* rings whose clock can't be tied to the trace clock */
	uint64_t bound;		 /* largest error of the converted times, ns */
};
void mark_rings_sum(const struct mark_rings *m, struct mark_rings_sum *ret);
/* Warns of what programs had too much of. 0 or -ENOMEM. */
int mark_rings_warn(const struct mark_rings *m, struct stream_index *index);
