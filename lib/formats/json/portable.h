/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes an event's text one that every reader of the JSON takes without a
 * complaint. Each rule was measured with Catapult's importer and with Perfetto's trace
 * processor:
 *
 * - "NAME: details" is the only form: what the kernel prints otherwise (system
 *   calls, functions, stacks, events without details) gets the event's name before it.
 * - sched_switch: switch_line.h.
 * - A user's mark is named tracing_mark_write. Free text, which neither reader
 *   shows, becomes the slice "B|TGID|text" and at once "E|TGID".
 * - "trace_event_clock_sync:" within a mark makes Trace Viewer tie clocks, and fail
 *   where it can't: it is broken by a dash. Only marks that are nothing but
 *   a sync stay, the first of each id, and have their counterparts in the JSON.
 */
#pragma once

#include "export/sink.h"
#include "formats/json/switch_line.h"
#include "marks/sync_scan.h"

/* The mark that ties the kernel's text to the JSON's events: both are in one clock. */
struct clock_sync {
	bool seen;   /* it is in the text */
	uint64_t ts; /* and there at this time */
	/* Marks that others put there for the same purpose, each id once. */
	struct other_sync {
		char id[SYNC_ID_MAX + 1];
		uint64_t ts;
	} * others; /* owned */
	size_t other_count;
};
#define OTHER_SYNCS_MAX SYNC_SCAN_MAX

struct portable {
	const struct trace_info *info;
	const struct event *sched_switch, *print;
	struct switch_line switch_line;
	struct clock_sync sync;
	int32_t mark_pid; /* of the last mark of free text */
};

/*
 * Whether rec, of a mark, may be one of a clock sync: these alone change p->sync, which is to have
 * seen all of them in order. For other events each thread may have a struct portable of its own.
 */
bool portable_may_sync(const struct record *rec);
void portable_init(struct portable *p, const struct trace_info *info);
void portable_deinit(struct portable *p);
/* What comes is of another file: the sync marks so far are not in it. */
void portable_restart(struct portable *p);
enum portable_line {
	PORTABLE_EVENT,
	PORTABLE_SLICE, /* a mark of free text: portable_end_mark makes a second line */
};

/* The text of ev is what out holds from offset text on; it may grow. */
enum portable_line portable_fix(struct portable *p, const struct trace_event *ev, struct buf *out,
				size_t text);
void portable_end_mark(const struct portable *p, struct buf *out);
