/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Merges all CPUs' sub-buffers into one sequence ordered by time. At equal times the lowest CPU
 * comes first, as in the kernel's `trace` file. Records of one CPU keep their order even if a clock
 * ran backwards.
 *
 * Memory: each CPU has a window of the stream. All windows together take MERGE_MEMORY, or
 * MERGE_WINDOW_LEAST each if that is more. Lent windows (loan.h) take MERGE_LENT more, or
 * MERGE_LENT_LEAST if the CPUs' windows exceed their share. A window holds whole sub-buffers or a
 * part of one. A record longer than that gets a larger window; these together take at most
 * MERGE_LONG. Beyond it, the record and the rest of its sub-buffer count as damaged.
 */
#pragma once

#include "trace/index.h"
#include "trace/loan.h"
#include "trace/trace_event.h"

#define MERGE_MEMORY (12U << 20)
#define MERGE_WINDOW_MAX (1U << 20)
#define MERGE_WINDOW_LEAST (4U << 10)
#define MERGE_LENT (8U << 20)
#define MERGE_LENT_LEAST (2U << 20)
#define MERGE_LONG (128U << 20)

enum merge_kind {
	MERGE_END = 0,
	MERGE_RECORD,
	MERGE_LOSS, /* before the record that follows the gap, or after the CPU's last record */
};

struct merge_item {
	/*
	 * cpu is set and, for a MERGE_RECORD, rec. Its data is valid until the next call; if lent,
	 * until it is returned.
	 */
	struct trace_event event;
	/* For a MERGE_LOSS: */
	uint64_t before_ts; /* time of the CPU's last record before the loss; 0: none */
	uint64_t after_ts;  /* time of the CPU's next record; UINT64_MAX: none */
	uint64_t count;	    /* events; UINT64_MAX: unknown */
	bool damaged;	    /* unreadable part of the stream, not a loss in the kernel */
};

/*
 * Losses that the merge met, known before the time of the gap: a CPU's next record is decoded right
 * after its last one was given out.
 */
struct merge_gaps {
	uint64_t met;  /* so far */
	uint32_t open; /* CPUs that are in one: their MERGE_LOSS has not been given out */
};

struct merge;

/*
 * Borrows layout, ring and reader. Gives out all that ring has, unless merge_extend() sets a limit.
 */
int merge_new(struct merge **ret, const struct page_layout *layout, const struct ring_index *ring,
	      const struct stream_reader *reader, struct error *err);
struct merge *merge_free(struct merge *m);
DEFINE_CLEANUP_FUNC(struct merge *, merge_free);
/* Borrows loan. From now on records are lent. */
void merge_lend(struct merge *m, const struct loan *loan);

/* Returns an enum merge_kind or -errno: -EIO, -ENOMEM. Damage is reported as MERGE_LOSS. */
int merge_next(struct merge *m, struct merge_item *ret, struct error *err);
/*
 * Looks ahead to the next record of the same CPU. rec is the last one from merge_next(); its data
 * may be moved, and is then valid until the next look ahead instead of lent. Returns 1; 0 if there
 * is none or events are missing in between; or -errno.
 */
int merge_peek(struct merge *m, struct record *rec, struct record *ret, struct error *err);
/*
 * Call it when the ring index has grown. From now on records of chunks before offset limit are
 * given out, and older ones; then comes MERGE_END, for now. UINT64_MAX: no limit, and MERGE_END is
 * final.
 */
int merge_extend(struct merge *m, uint64_t limit, struct error *err);
/* The stream before this offset is not needed any more. */
uint64_t merge_needs(const struct merge *m);
/* Drops the places of consumed chunks from ring, which must be the merge's. */
void merge_forget(struct merge *m, struct ring_index *ring);
/* Valid as long as the merge; changes in merge_next() and merge_peek(). */
const struct merge_gaps *merge_gaps(const struct merge *m);
/* Bytes of the stream consumed so far, to show progress. */
uint64_t merge_progress(const struct merge *m);
