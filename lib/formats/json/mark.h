/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes marks as JSON: members of stackFrames, events, elements of samples. What would make Trace
 * Viewer refuse the whole trace is left out or changed, and counted.
 */
#pragma once

#include "formats/json/frames.h"
#include "formats/json/nested.h"
#include "formats/json/steps.h"
#include "trace/index.h"

struct json_marks {
	struct json_frames frames;
	struct nested_threads nested;
	struct json_steps steps;
	uint64_t refused;	 /* marks left out because readers would refuse the trace */
	const char *why_refused; /* reason for the first one */
	uint64_t stackless;	 /* marks and samples whose frames are not there */
	uint64_t colourless;	 /* marks with a colour that readers would refuse */
	uint64_t renamed;	 /* members of snapshots with another name */
	uint64_t numberless;	 /* values of counters that are no numbers */
	struct buf name;	 /* a process's, with its machine's label */
};
void json_marks_deinit(struct json_marks *j);

/*
 * Appends the mark, with a leading comma if needed; a frame is kept for the end. 1; 0: no reader
 * shows it (a counter without a number) or one would refuse the trace, so nothing was appended;
 * -ENOSPC: no room for more frames; -ENOMEM.
 */
int json_put_mark(struct json_marks *j, struct buf *out, const struct mark *m);
/* Warns of what was left out or changed. Call it after the last mark. */
int json_marks_warn(struct json_marks *j, struct stream_index *index);
