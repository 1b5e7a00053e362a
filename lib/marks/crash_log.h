/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Marks of a crash, for a ring that was filled before the machine started anew: the lines of the
 * kernel's log that pstore kept, and the time of the last event.
 *
 * printk's clock is the trace clock "local", so its lines have a place only in such a recording.
 */
#pragma once

#include "marks/mark.h"
#include "trace/trace_info.h"

/* pstore keeps some tens of kilobytes of the log. */
#define CRASH_LINES_MAX 65536

struct crash_line {
	uint64_t ts;	  /* ns */
	struct text text; /* borrowed from the message */
};

struct crash_log {
	struct crash_line *lines; /* owned; in order of time */
	size_t count, cap, next;
	uint64_t untimed;  /* lines without a time by the trace clock, which are left out */
	uint64_t too_many; /* later lines, which are left out, too */
};

/* Borrows info. 0 or -ENOMEM. */
int crash_log_read(struct crash_log *ret, const struct trace_info *info);
void crash_log_deinit(struct crash_log *log);
/* False: no more. */
bool crash_log_next(struct crash_log *log, struct mark *ret);

/* The mark at the time of the last event. */
void crash_mark(struct mark *ret, uint64_t ts);
