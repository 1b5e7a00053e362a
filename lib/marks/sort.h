/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Marks in, the same marks in order out. What memory does not hold goes, in
 * sorted runs, to a scratch file that somebody else opened (an exporter opens
 * nothing); what is read back from there is checked like any input.
 *
 * The order: frames, metadata, what has a time, samples; by time; of equal times complete
 * marks come last and of these the longest first, so that it encloses the others; else
 * as they were added.
 */
#pragma once

#include "base/error.h"
#include "marks/mark.h"

#define MARK_SORT_MEMORY (16U << 20) /* of one run */
#define MARK_SORT_RUNS_MAX 512
/* One mark, packed; longer ones are not taken. */
#define MARK_PACKED_MAX (4U << 20)

/* Where runs go; shared by all sorters of an export. */
struct scratch {
	int fd; /* borrowed; below 0: there is none */
	uint64_t end;
};

struct mark_sort;

/* memory: of a run; 0: MARK_SORT_MEMORY. */
int mark_sort_new(struct mark_sort **ret, struct scratch *scratch, size_t memory);
struct mark_sort *mark_sort_free(struct mark_sort *s);
DEFINE_CLEANUP_FUNC(struct mark_sort *, mark_sort_free);

/* -EFBIG: more than memory holds, and there is no scratch file, or too many runs. -E2BIG: too long.
 */
int mark_sort_add(struct mark_sort *s, const struct mark *mark, struct error *err);
/* No more is added. */
int mark_sort_finish(struct mark_sort *s, struct error *err);
/* 1, the mark valid until the next call; 0: the end; -errno. */
int mark_sort_next(struct mark_sort *s, struct mark *ret, struct error *err);

/*
 * A finished one's marks, none of them taken yet, are changed and put in order anew: in another
 * sorter, which takes its place. On failure it is of no use.
 */
int mark_sort_again(struct mark_sort **sort, struct scratch *scratch,
		    void (*change)(struct mark *mark, void *userdata), void *userdata,
		    struct error *err);

/* The place of a phase in the order: 0 frames, 1 metadata, 2 what has a time, 3 samples. */
unsigned mark_class(uint8_t phase);
/* As packed; -E2BIG: longer than MARK_PACKED_MAX. Bytes that lie: -EBADMSG. */
int mark_pack(const struct mark *mark, struct buf *out);
int mark_unpack(struct mark *ret, const char *data, size_t len);
