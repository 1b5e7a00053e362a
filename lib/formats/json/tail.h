/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The JSON without the kernel's text: elements of traceEvents, names, clocks, the account. */
#pragma once

#include "export/sink.h"
#include "formats/json/functions.h"
#include "formats/json/mark.h"
#include "formats/json/mend.h"
#include "formats/json/portable.h"
#include "formats/json/spool.h"

/* Borrowed; each file has its own. */
struct json_parts {
	struct json_spool *spool;
	const struct json_functions *functions;
};

DECLARE_TABLE(json_pids, int32_t);

/*
 * Writes the members after "systemTraceEvents", each with a leading comma. Marks go to their
 * members, and arrive in the order of the members. The spool holds elements of traceEvents.
 *
 * Or "traceEvents" comes first: its elements are written as they come, and the spool holds the
 * kernel's text.
 */
struct json_tail {
	struct output *out;
	const struct trace_info *info;
	const struct mark_feed *marks; /* or NULL */
	const struct clock_sync *sync;
	struct json_parts parts;
	bool array; /* only events, which come first */
	bool first; /* the text follows the events; in a page, follows everything here */
	bool page;
	const struct export_options *options;
	enum tail_section {
		TAIL_NOTHING,
		TAIL_EVENTS, /* kernel events, while more may come */
		TAIL_MARKS,  /* all names are written */
		TAIL_SAMPLES,
		TAIL_END
	} section;
	uint64_t left_out;	    /* marks dropped because no reader shows them */
	struct json_marks written;  /* of all files */
	struct buf names;	    /* names given by applications, each with a leading comma */
	int32_t last_tid;	    /* tid of the last mark */
	struct json_pids processes; /* already named */
};
/* parts: of the first file. */
void json_tail_init(struct json_tail *t, const struct sink_env *env, const struct clock_sync *sync,
		    const struct json_parts *parts, bool array, bool page);
/* Begins another file; names and frames so far also apply to its marks. */
void json_tail_restart(struct json_tail *t, const struct json_parts *parts);
void json_tail_deinit(struct json_tail *t);
/* Call first if "traceEvents" comes first. Elements follow, each with a leading comma. */
void json_tail_events_first(struct json_tail *t);
/*
 * A mark before the end of the kernel's events: it goes to the spool; or, if traceEvents comes
 * first, to the output, and its length is added to *units.
 */
int json_tail_early_mark(struct json_tail *t, const struct mark *mark, uint64_t *units);
int json_tail_mark(struct json_tail *t, const struct mark *mark);
/* Bytes of the stack frames, which json_tail_close() writes. */
static inline uint64_t json_tail_frames(const struct json_tail *t)
{
	return t->written.frames.text.len;
}
/* Begins an array of elements: names what all machines of a file share. */
void json_put_process_0(struct buf *b);
/* Writes the rest. 0 or -errno. */
int json_tail_close(struct json_tail *t, const struct export_result *result);
