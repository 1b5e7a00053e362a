/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What follows the kernel's text in the JSON: names, clocks, the account of events. */
#pragma once

#include "export/portable.h"
#include "export/sink.h"

/*
 * The members after "systemTraceEvents", each with a comma before it. Marks go
 * to the one that is theirs; they come in the order of the members.
 */
struct json_tail {
	struct output *out;
	const struct trace_info *info;
	const struct clock_sync *sync;
	enum tail_section {
		TAIL_NOTHING,
		TAIL_FRAMES,
		TAIL_EVENTS,
		TAIL_SAMPLES,
		TAIL_END
	} section;
	uint64_t marks, left_out; /* those that no reader takes */
};
void json_tail_init(struct json_tail *t, struct output *out, const struct trace_info *info,
		    const struct clock_sync *sync);
int json_tail_mark(struct json_tail *t, const struct mark *mark);
/* All that is left to say. 0 or -errno. */
int json_tail_close(struct json_tail *t, const struct export_result *result);
