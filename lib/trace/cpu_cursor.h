/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The records of one CPU of one buffer, in the ring's order, and the losses between them: chunks of
 * the stream into a window, its sub-buffers into records. The merge (merge.h) has one cursor for
 * each.
 */
#pragma once

#include "trace/chunk_cursor.h"
#include "trace/lent_windows.h"
#include "trace/merge.h"

/* All cursors of a merge, and what they share. */
struct cpu_cursors {
	const struct page_layout *layout;
	const struct ring_index *ring;
	struct chunk_source source;
	uint32_t window_max; /* bytes; a cursor's share of MERGE_MEMORY */
	uint64_t consumed;   /* bytes of the stream */
	struct lent_windows lent;
	struct merge_gaps gaps;
	struct cpu_cursor **all; /* owned, with their elements; sorted by CPU */
	size_t count;
};

struct cpu_cursor {
	uint32_t cpu;
	uint32_t buffer;
	uint32_t number;	 /* its index in cpu_cursors.all */
	struct merge_gaps *gaps; /* those of struct cpu_cursors */
	/*
	 * Its window has whole sub-buffers, or part of one. Its skip is 0 after the chunk's first
	 * sub-buffer.
	 */
	struct chunk_cursor chunks;
	bool part; /* window has part of a sub-buffer; windows may be larger or smaller since it was
		      filled */
	struct page_iter page;
	uint32_t seen; /* records starting below this offset in the page were given out before */
	struct record next;
	uint64_t last_ts; /* time of the record before next; 0: none */
	bool have_record;
	bool queued;	  /* it has a record or a loss to give out */
	bool ahead;	  /* merge_peek() has already advanced to next */
	int ahead_result; /* result of that cpu_cursor_next_record() */
	struct buf kept;  /* copy of the last record: merge_peek() may replace the window */
	bool loss;	  /* report a loss before next */
	bool damaged;
	uint64_t lost;
};

/* Borrows all. Call cpu_cursors_extend() before the first record, and when the ring index has
 * grown. */
void cpu_cursors_init(struct cpu_cursors *cpus, const struct page_layout *layout,
		      const struct ring_index *ring, const struct stream_reader *reader);
void cpu_cursors_deinit(struct cpu_cursors *cpus);
/* Adds cursors for new CPUs. The ring index is sorted by CPU and never loses one. 0 or -ENOMEM. */
int cpu_cursors_extend(struct cpu_cursors *cpus, struct error *err);

/* Decodes the next record into c->next. Returns 1, 0 at the CPU's end, or -errno. */
int cpu_cursor_next_record(struct cpu_cursors *cpus, struct cpu_cursor *c, struct error *err);
/* Events are missing before the next record. count: UINT64_MAX: unknown. */
void cpu_cursor_note_loss(struct cpu_cursor *c, uint64_t count, bool damaged);
/*
 * The stream before this offset is not needed for the cursor. Records in the window that were not
 * given out are still needed if this process dies. list: its CPU's.
 */
uint64_t cpu_cursor_needs(const struct cpu_cursor *c, const struct chunk_list *list);
