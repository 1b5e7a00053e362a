/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns a CPU profile into samples: one for each stack, with its count as weight.
 *
 * A profile has neither times nor threads. Its samples get a tid that no kernel uses, and are laid
 * out one after the other from the recording's begin, each as long as the CPU time it stands for;
 * scaled down if the total exceeds the recording. The profile's name in the trace says so.
 */
#pragma once

#include "base/code_place.h"
#include "marks/input_file.h"
#include "marks/trace_file.h"

/* First tid above Linux's limit of 4 million (PID_MAX_LIMIT). */
#define PROFILE_TID_FIRST 4194305

/* Facts about the profile for the trace's metadata. */
struct profile_sum {
	const char *name; /* name of the file; borrowed */
	int32_t tid;	  /* also used as its pid */
	uint64_t period_us, samples, stacks;
	uint64_t unnamed;	     /* frames without a function's name */
	uint64_t from_ts, placed_ns; /* in the trace clock */
	bool squeezed;		     /* it exceeds the recording: times were scaled down */
};

struct profile_where {
	uint32_t source; /* number of its marks' source */
	int32_t tid;
	uint64_t from_ts, to_ts; /* begin and end of the recording, in the trace clock */
};

/*
 * Reads the whole profile as marks in the trace clock. Memory: the file's size plus its stacks.
 * -EBADMSG: not a profile, or damaged. Pass ret to trace_file_deinit in any case.
 */
int profile_marks_read(struct trace_file *ret, struct profile_sum *sum,
		       const struct export_profile *from, const struct profile_where *where,
		       const struct export_symbols *symbols, struct scratch *scratch,
		       struct error *err);
