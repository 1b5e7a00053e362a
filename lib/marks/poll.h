/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes one reading of a polled file apart: see traced.capture.Poll. The content is hostile: lines
 * that are not what the kernel writes are skipped.
 */
#pragma once

#include "marks/mark.h"
#include "proto/capture.pb-c.h"
#include "stream/poll_source.h"

/* Longer names of items and values are skipped. */
#define POLL_NAME_MAX 128

struct poll {
	const Traced__Capture__Poll *message; /* borrowed */
	uint64_t ts;			      /* ns, in the trace clock */
	uint64_t hz;			      /* the kernel's USER_HZ */
};

struct poll_value {
	struct text item; /* "cpu0", "sda", "memory"; len 0: none */
	struct text key;  /* the value's name in the file; len 0: it has none */
	const char *unit; /* "kB"; NULL: the file names none */
	uint32_t number;  /* the CPU, thermal zone or process */
	bool negative;	  /* `bits` is an int64_t below 0; otherwise a uint64_t */
	uint64_t bits;
};

struct poll_iter {
	const struct poll *poll;
	size_t file; /* number of the next file */
	uint32_t number;
	struct text label, rest;   /* of the current file; rest: not read yet */
	const struct text *column; /* name of the line's next value; NULL: the line is done */
	const struct text *column_end;
	struct text line, item; /* of a line with columns; line: not read yet */
	uint64_t scale;		/* of its values */
	const char *unit;
	char name[32];
};

void poll_iter_init(struct poll_iter *it, const struct poll *poll);
/* False: no more. ret is valid until the next call. */
bool poll_next(struct poll_iter *it, struct poll_value *ret);

/*
 * The value as a counter, with its name in `scratch`: "meminfo MemFree", with the series "kB". ret
 * is valid until the next use of scratch. 0 or -ENOMEM.
 */
int poll_mark(const struct poll *poll, const struct poll_value *v, struct buf *scratch,
	      struct mark *ret);
