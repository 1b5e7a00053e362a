/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For a file of several machines: moves the numbers of tasks and CPUs in an event's fields to the
 * ranges of its machine, before the event is printed. Only fields that are known to hold such a
 * number, of events by which readers find tasks and CPUs: other fields are as the kernel wrote
 * them.
 */
#pragma once

#include "trace/host_numbers.h"
#include "trace/trace_event.h"
#include "trace/trace_info.h"

#define HOST_FIELDS_MAX 96

struct host_fields {
	const struct host_numbers *host; /* NULL: nothing is moved */
	struct host_field {
		const struct event *ev;
		uint32_t offset; /* of 4 bytes */
		bool is_cpu;
	} all[HOST_FIELDS_MAX];
	size_t count;
	bool swap;
	struct buf record; /* the last changed one */
};

void host_fields_init(struct host_fields *f, const struct trace_info *info);
void host_fields_deinit(struct host_fields *f);
/*
 * Returns ev, or a copy in *copy whose record is valid until the next call. NULL: out of memory.
 */
const struct trace_event *host_fields_move(struct host_fields *f, const struct trace_event *ev,
					   struct trace_event *copy);
