/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

#include "print/event_table.h"
#include "print/record.h"

/*
 * One event on its way to a sink. The merge sets its origin and record, the exporter decodes the
 * record's head. It is never copied.
 */
struct trace_event {
	const struct event *desc; /* NULL: the stream has no format for id */
	struct record rec;
	/*
	 * For a function_graph entry of a function that calls none: its exit, which is the CPU's
	 * next event. Otherwise NULL. Valid during the call.
	 */
	const struct trace_event *exit;
	/* In the same order as in a record, so that words can be copied. */
	uint16_t id;
	uint8_t flags, preempt_count; /* as the kernel stored them */
	int32_t pid;
	uint32_t cpu;
};
