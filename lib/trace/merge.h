/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All CPUs' sub-buffers, as one sequence ordered by time; of equal
 * times the lowest CPU comes first, as in the kernel's own `trace` file. Records
 * of one CPU keep their order even where a clock went backwards.
 *
 * Memory: a window of the stream for each CPU, together MERGE_MEMORY, but never less than
 * MERGE_WINDOW_LEAST each; and MERGE_LENT of such as were given out and are not given back, or
 * MERGE_LENT_LEAST where those of the CPUs take more than their share. A window has whole
 * sub-buffers, or a part of one. Or it has one record that is longer, unless such windows were
 * more than MERGE_LONG: then the record and what follows it in its sub-buffer is damaged.
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
	MERGE_LOSS, /* right before the record that follows the gap, or after the CPU's last one */
};

struct merge_item {
	/* Its cpu is told, and of a MERGE_RECORD its rec, whose data are valid until the next call
	 * or, lent, until they are given back. */
	struct trace_event event;
	/* Of a MERGE_LOSS: */
	uint64_t before_ts; /* of the CPU's last record before it; 0: none */
	uint64_t after_ts;  /* UINT64_MAX: none follows */
	uint64_t count;	    /* UINT64_MAX: not known */
	bool damaged;	    /* a part of the stream that can't be read, not the kernel's loss */
};

struct merge;

/*
 * Borrows layout, ring and reader. All that ring has is given out, unless merge_extend says
 * otherwise.
 */
int merge_new(struct merge **ret, const struct page_layout *layout, const struct ring_index *ring,
	      const struct stream_reader *reader, struct error *err);
struct merge *merge_free(struct merge *m);
DEFINE_CLEANUP_FUNC(struct merge *, merge_free);
/* Borrows loan: what is given out is lent. */
void merge_lend(struct merge *m, const struct loan *loan);

/* An enum merge_kind, or -errno: -EIO, -ENOMEM. Damage is no error but a MERGE_LOSS. */
int merge_next(struct merge *m, struct merge_item *ret, struct error *err);
/*
 * Looks ahead from the record that merge_next gave last, rec: the one that follows it on
 * its CPU. rec's data may move; then they are not lent, but valid until the next call that looks
 * ahead. 1, 0: there is none, or events are missing between; or -errno.
 */
int merge_peek(struct merge *m, struct record *rec, struct record *ret, struct error *err);
/*
 * The ring has grown. From here on records of chunks that lie before limit are given out
 * (and such as are older); then comes MERGE_END, for now. UINT64_MAX: all of them, and the end is
 * the end.
 */
int merge_extend(struct merge *m, uint64_t limit, struct error *err);
/* The offset in the stream before which nothing is needed any more. */
uint64_t merge_needs(const struct merge *m);
/* Drops the places of chunks that were consumed from ring, which is the merge's. */
void merge_forget(struct merge *m, struct ring_index *ring);
/* Bytes of the stream that were consumed, for the progress. */
uint64_t merge_progress(const struct merge *m);
