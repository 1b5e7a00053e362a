/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The limits of a recording that make spans unknown. With -P or -F, the kernel leaves out switches
 * between other tasks: of those, nobody knows how long they ran or waited. With --cpus, tasks run
 * elsewhere unseen. A filter on switches or wake-ups leaves out any of them.
 */
#pragma once

#include "report/table.h"
#include "trace/trace_info.h"

struct recorded {
	const struct trace_info *info;
	int32_t *tids, *processes; /* owned, sorted; as many as the request has */
	bool some_tasks, some_cpus, some_switches, some_wakeups;
	bool is_partial; /* one of these */
};

/*
 * Each recording has the formats of tracers' events. True: others were asked for. False also where
 * nobody knows, as in another tool's file.
 */
bool recorded_lacks_tracer(const struct trace_info *info, const char *tracer);
/* Returns 0 or -ENOMEM. info stays the caller's. */
int recorded_init(struct recorded *r, const struct trace_info *info);
void recorded_deinit(struct recorded *r);
/* Whether all events about the task that has the tid at that time are in the recording. */
bool recorded_has_task(const struct recorded *r, int32_t tid, uint64_t ts);
/* Says below a table of spans what is unknown. */
void recorded_note(const struct recorded *r, struct table *t);
