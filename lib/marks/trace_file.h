/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads a file of the Trace Event Format that an application wrote itself:
 * an array of events or an object that has one, plain or through gzip. An array
 * need not be closed. Times stay in the file's own clock here.
 *
 * Raw stacks become frames, as both readers of the JSON want them.
 */
#pragma once

#include "marks/sort.h"

/* One of the file's clock_sync events. */
struct trace_file_sync {
	char *id;	       /* owned */
	uint64_t ts, issue_ts; /* ns, in the file's clock; issue_ts 0: it was the receiver */
};
#define TRACE_FILE_SYNCS_MAX 1024

struct trace_file {
	struct mark_sort *marks;       /* owned; finished */
	uint64_t count;		       /* of events and samples */
	uint64_t first_ts, last_ts;    /* of what has a time; 0: nothing has */
	uint64_t left_out;	       /* events without what every event must have */
	const char *why_left_out;      /* of the first of them */
	struct trace_file_sync *syncs; /* owned */
	size_t sync_count;
	bool clock_monotonic; /* its metadata names LINUX_CLOCK_MONOTONIC */
	bool unit_ms;	      /* displayTimeUnit */
	bool has_unit;
	bool kernel_text;     /* it has kernel text of its own, which is left out */
	bool cut;	      /* it ended in the middle of something */
	char *controller_key; /* controllerTraceDataKey; owned, or NULL */
	struct buf members;   /* other members of the object: values of a dict */
};

/* Whether these, the first bytes of a file, may be such a file's. */
bool trace_file_begins(const void *data, size_t len);

/*
 * Reads all of it. source: of its marks. Memory: that of the sorter and a
 * few MiB. -EBADMSG: not such a file, and where; -EFBIG: a string, a depth or a number of
 * things that is not taken. What was read before stays in ret, which is to be given to
 * trace_file_deinit in any case.
 */
int trace_file_read(struct trace_file *ret, int fd, uint32_t source, struct scratch *scratch,
		    struct error *err);
void trace_file_deinit(struct trace_file *f);
