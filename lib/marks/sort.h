/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * External merge sort of marks. What exceeds memory goes, in sorted runs, to a scratch file that
 * the caller opened (an exporter opens nothing). Data read back is checked like any input.
 *
 * Order: frames, metadata, marks with a time, samples; each by time. At equal times complete marks
 * come last, the longest first, so that it encloses the others; then in order of addition.
 */
#pragma once

#include "base/error.h"
#include "marks/mark.h"

#define MARK_SORT_MEMORY (16U << 20) /* bytes of one run */
#define MARK_SORT_RUNS_MAX 512
/* Bytes of one packed mark; longer ones are rejected. */
#define MARK_PACKED_MAX (4U << 20)

/* File for sorted runs, shared by all sorters of an export. */
struct scratch {
	int fd; /* borrowed; negative: none */
	uint64_t end;
};

struct mark_sort;

/* memory: bytes of a run; 0: MARK_SORT_MEMORY. */
int mark_sort_new(struct mark_sort **ret, struct scratch *scratch, size_t memory);
struct mark_sort *mark_sort_free(struct mark_sort *s);
DEFINE_CLEANUP_FUNC(struct mark_sort *, mark_sort_free);

/*
 * -EFBIG: memory is full and there is no scratch file, or there are too many runs. -E2BIG: the mark
 * is too long.
 */
int mark_sort_add(struct mark_sort *s, const struct mark *mark, struct error *err);
/* No marks may be added afterwards. */
int mark_sort_finish(struct mark_sort *s, struct error *err);
/* 1: ret is valid until the next call; 0: the end; -errno. */
int mark_sort_next(struct mark_sort *s, struct mark *ret, struct error *err);

/*
 * Applies `change` to all marks of a finished, unread sorter and sorts them again into a new
 * sorter, which replaces *sort. On failure *sort is unusable.
 */
int mark_sort_again(struct mark_sort **sort, struct scratch *scratch,
		    void (*change)(struct mark *mark, void *userdata), void *userdata,
		    struct error *err);

/* Sort class of a phase: 0 frames, 1 metadata, 2 marks with a time, 3 samples. */
unsigned mark_class(uint8_t phase);
