/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The head of each record: the kernel's struct trace_entry, laid out as the recording's formats
 * say.
 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "trace/trace_event.h"

struct event_head {
	const struct common_fields *common;
	uint32_t least; /* bytes of the common fields, and of the shortest record */
	bool usual;	/* little-endian, with the layout of all kernels so far */
	bool big_endian;
};

/* Borrows common. */
struct event_head event_head_of(const struct common_fields *common, bool big_endian);

/* Reads the head of ev's record, which has at least head->least bytes. */
static inline void event_head_read(const struct event_head *head, struct trace_event *ev)
{
	const struct common_fields *c = head->common;
	const uint8_t *data = ev->rec.data;
	uint64_t word;

	if (likely(head->usual)) {
		word = load_u64(data, false);
		ev->id = (uint16_t)word;
		ev->flags = (uint8_t)(word >> 16);
		ev->preempt_count = (uint8_t)(word >> 24);
		ev->pid = (int32_t)(word >> 32);
		return;
	}
	ev->id = load_u16(data, head->big_endian);
	ev->flags = data[c->flags_offset];
	ev->preempt_count = data[c->preempt_offset];
	ev->pid = (int32_t)load_u32(data + c->pid_offset, head->big_endian);
}
