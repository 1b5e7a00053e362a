/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

#include "print/event_table.h"
#include "print/record.h"

/*
 * One event on its way to a sink: the merge fills in where it comes from and its record, the
 * exporter what the record begins with. It is not copied.
 */
struct trace_event {
	const struct event *desc; /* NULL: no format was captured for id */
	struct record rec;
	/*
	 * NULL, or of the function_graph tracer's entry of a function that called none: its
	 * exit, the CPU's next event. Valid during the call.
	 */
	const struct trace_event *exit;
	/* In the order in which they stand in a record: they are copied by words. */
	uint16_t id;
	uint8_t flags, preempt_count; /* as the kernel stored them */
	int32_t pid;
	uint32_t cpu;
};
