/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rewrites an event's text so that every reader of the JSON accepts it. Each rule was measured with
 * Catapult's importer and Perfetto's trace processor:
 *
 * - The only form is "NAME: details". Other texts (system calls, functions, stacks, events without
 *   details) get the event's name as prefix.
 * - sched_switch: see switch_line.h.
 * - User marks are named tracing_mark_write. Free text, which neither reader shows, becomes the
 *   slice "B|TGID|text", closed at once by "E|TGID".
 * - "trace_event_clock_sync:" inside a mark makes Trace Viewer tie clocks, or fail: a dash is
 *   inserted. Only pure sync marks stay, the first of each id; the JSON has their counterparts.
 */
#pragma once

#include "export/sink.h"
#include "formats/json/switch_line.h"
#include "trace/sync_scan.h"

/* The mark that ties the kernel's text to the JSON's events: both use one clock. */
struct clock_sync {
	bool seen;   /* it is in the text */
	uint64_t ts; /* its time there */
	/* Sync marks of others, each id once. */
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
	int32_t mark_pid; /* pid of the last free-text mark */
};

/*
 * Whether rec, a mark, may be a clock sync. Only these change p->sync, which must see all of them
 * in order. For other events, each thread may use its own struct portable.
 */
bool portable_may_sync(const struct record *rec);
void portable_init(struct portable *p, const struct trace_info *info);
void portable_deinit(struct portable *p);
/* A new file begins: no sync mark is in it yet. */
void portable_restart(struct portable *p);
enum portable_line {
	PORTABLE_EVENT,
	PORTABLE_SLICE, /* free text: write a second line by portable_end_mark */
};

/* The text of ev is out from offset `text` on; it may grow. */
enum portable_line portable_fix(struct portable *p, const struct trace_event *ev, struct buf *out,
				size_t text);
void portable_end_mark(const struct portable *p, struct buf *out);
