/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A CPU profile as samples of a trace: one for each stack, its weight how often that was met.
 *
 * A profile tells neither when nor by which thread. So its samples are those of a
 * thread that no kernel can have, and follow each other from the recording's begin on, each taking
 * the CPU time that it stands for; where all of it is longer than the recording,
 * proportionally less. What is shown of the profile says so.
 */
#pragma once

#include "base/code_place.h"
#include "marks/input_file.h"
#include "marks/trace_file.h"

/* Linux has no more than 4 million (PID_MAX_LIMIT): the first beyond. */
#define PROFILE_TID_FIRST 4194305

/* What the file says of itself, for who reads the trace. */
struct profile_sum {
	const char *name; /* of the file; borrowed */
	int32_t tid;	  /* also of its process */
	uint64_t period_us, samples, stacks;
	uint64_t unnamed;	     /* frames without a function's name */
	uint64_t from_ts, placed_ns; /* of the trace clock */
	bool squeezed;		     /* it is longer than the recording */
};

struct profile_where {
	uint32_t source; /* of its marks */
	int32_t tid;
	uint64_t from_ts, to_ts; /* the recording's begin and end, by the trace clock */
};

/*
 * All of it, as marks in the trace clock. Memory: the file's size and that of its
 * stacks. -EBADMSG: not such a file, or a damaged one. ret is to be given to trace_file_deinit in
 * any case.
 */
int profile_marks_read(struct trace_file *ret, struct profile_sum *sum,
		       const struct export_profile *from, const struct profile_where *where,
		       const struct export_symbols *symbols, struct scratch *scratch,
		       struct error *err);
