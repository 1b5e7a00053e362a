/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The last chunks of a stream that is made of a trace: counts, notes, the end. */
#pragma once

#include "proto/origin.pb-c.h"
#include "stream/writer.h"

/* What of a trace did not come through, as the stream's notes tell it. */
struct missing {
	bool cut;	       /* it ends early, or packets of it are damaged */
	bool another;	       /* behind it in its file is another one, */
	uint64_t damaged;      /* packets, formats and symbols that make no sense, */
	uint64_t events;       /* events that make none, */
	uint64_t bundles;      /* those whose events lack values, */
	bool symbols;	       /* some of them, as there are too many */
	uint64_t marks;	       /* marks, or parts of them, */
	const char *marks_why; /* and why the first; static */
};

/* end: what the trace says of its recording's end; NULL: it does not. 0 or the writer's errors. */
int ending_write(struct stream_writer *w, const Traced__Origin__Recording *end,
		 const struct missing *missing);
