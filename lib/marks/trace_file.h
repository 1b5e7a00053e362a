/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads an application's file in the Trace Event Format: an array of events, or an object that has
 * one, plain or gzip. The array need not be closed. Times stay in the file's own clock.
 *
 * Raw stacks become frames, which the readers of the JSON expect.
 */
#pragma once

#include "marks/sort.h"

/* One of the file's clock_sync events. */
struct trace_file_sync {
	char *id;	       /* owned */
	uint64_t ts, issue_ts; /* ns, in the file's clock; issue_ts 0: this file was the receiver */
};
#define TRACE_FILE_SYNCS_MAX 1024

struct trace_file {
	struct mark_sort *marks;       /* owned; finished */
	uint64_t count;		       /* number of events and samples */
	uint64_t first_ts, last_ts;    /* range of the times; 0: none */
	uint64_t left_out;	       /* invalid events */
	const char *why_left_out;      /* reason for the first one */
	struct trace_file_sync *syncs; /* owned */
	size_t sync_count;
	bool clock_monotonic; /* its metadata names LINUX_CLOCK_MONOTONIC */
	bool unit_ms;	      /* displayTimeUnit */
	bool has_unit;
	bool unknown_unit;    /* its displayTimeUnit is neither ms nor ns */
	bool kernel_text;     /* it contains kernel text, which is dropped */
	bool cut;	      /* the file is truncated */
	const char *no_text;  /* the first member that should be a string and is none; NULL: none */
	char *controller_key; /* controllerTraceDataKey; owned, or NULL */
	struct buf power;     /* powerTraceAsString, as it came */
	struct buf members;   /* other members of the object: values of an object */
};

/* True if the first bytes of a file may begin such a file. */
bool trace_file_begins(const void *data, size_t len);

/*
 * Reads the whole file. source: number of its marks' source. Memory: the sorter's, plus a few MiB.
 * -EBADMSG: wrong format, with the position; -EFBIG: a string, a depth or a count is above its
 * limit. Earlier events stay in ret. Pass ret to trace_file_deinit in any case.
 */
int trace_file_read(struct trace_file *ret, int fd, uint32_t source, struct scratch *scratch,
		    struct error *err);
void trace_file_deinit(struct trace_file *f);
