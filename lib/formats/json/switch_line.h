/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of sched_switch as every reader of the JSON takes it: of prev_state only S R R+ D T t Z
 * X x K W D|K D|W are known, an idle kernel thread's I is written as S; a negative prio loses the
 * whole switch: 0.
 */
#pragma once

#include "base/buf.h"
#include "trace/trace_event.h"

/* Of its changes the record decides, but for comms: most need none, and their text no look. */
struct switch_line {
	const struct field *prev_prio, *next_prio, *prev_state;
	uint32_t need; /* bytes that a record with all of them has; UINT32_MAX: none has */
	bool swap;
	uint64_t known[8]; /* values of prev_state that readers know as they were printed */
	unsigned known_count;
};

/* ev: NULL, or what the recording's sched_switch is. */
void switch_line_init(struct switch_line *s, const struct event *ev, bool big_endian);
/* rec's text is what out holds from offset text on; it may grow. */
void switch_line_fix(struct switch_line *s, const struct record *rec, struct buf *out, size_t text);
