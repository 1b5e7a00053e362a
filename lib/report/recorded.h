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
	bool some_tasks, some_cpus, some_switches, some_wakeups;
};

struct recorded recorded_of(const struct trace_info *info);
/* Whether all events about the task are in the recording. */
bool recorded_has_task(const struct recorded *r, int32_t tid, uint64_t ts);
/* Says below a table of spans what is unknown. */
void recorded_note(const struct recorded *r, struct table *t);
