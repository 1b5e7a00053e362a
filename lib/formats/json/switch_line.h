/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rewrites the text of sched_switch for all readers of the JSON. They know only the prev_state
 * values S R R+ D T t Z X x K W D|K D|W: I of idle kernel threads becomes S. A negative prio would
 * lose the whole switch: it becomes 0.
 */
#pragma once

#include "base/buf.h"
#include "trace/trace_event.h"

/*
 * The record shows whether its text needs a change (except comms); most don't, so their text is
 * not parsed.
 */
struct switch_line {
	const struct field *prev_prio, *next_prio, *prev_state;
	uint32_t need; /* bytes of a record with all fields; UINT32_MAX: fields are missing */
	bool swap;
	uint64_t known[8]; /* bit set of prev_state values whose text readers know */
	unsigned known_count;
};

/* ev: the recording's sched_switch, or NULL. */
void switch_line_init(struct switch_line *s, const struct event *ev, bool big_endian);
/* The text of rec is out from offset `text` on; it may grow. */
void switch_line_fix(struct switch_line *s, const struct record *rec, struct buf *out, size_t text);
