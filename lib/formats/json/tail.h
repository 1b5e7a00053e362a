/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The JSON but for the kernel's text: elements of traceEvents, names, clocks, the account of
 * events.
 */
#pragma once

#include "export/sink.h"
#include "formats/json/functions.h"
#include "formats/json/heads.h"
#include "formats/json/portable.h"
#include "formats/json/spool.h"

/* Borrowed; others for each file. */
struct json_parts {
	struct json_spool *spool;
	const struct json_functions *functions;
};

/*
 * The members after "systemTraceEvents", each with a comma before it. Marks go
 * to the one that is theirs; they come in the order of the members. What the spool
 * holds by the first of them has its place among the events.
 *
 * Or "traceEvents" comes first, whose elements are written as they come, and the spool holds
 * the kernel's text.
 */
struct json_tail {
	struct output *out;
	const struct trace_info *info;
	const struct mark_feed *marks; /* or NULL */
	const struct clock_sync *sync;
	struct json_parts parts;
	bool array; /* there are but events: they come first */
	bool first; /* the text comes behind the events; of a page, behind all of this */
	bool page;
	enum tail_section {
		TAIL_NOTHING,
		TAIL_EVENTS, /* of the kernel's, while there may be more */
		TAIL_MARKS,  /* all that needs a name has one */
		TAIL_SAMPLES,
		TAIL_END
	} section;
	uint64_t left_out;  /* marks that no reader takes */
	struct buf frames;  /* the member stackFrames, so far */
	bool stackless;	    /* one of them is that of samples without a stack */
	struct buf names;   /* that applications told, with a comma before each */
	int32_t last_tid;   /* of the last mark */
	int32_t *processes; /* owned; those that were named, sorted */
	size_t process_count, process_cap;
};
/* parts: of the first file. */
void json_tail_init(struct json_tail *t, const struct sink_env *env, const struct clock_sync *sync,
		    const struct json_parts *parts, bool array, bool page);
/* Another file: frames and names that were told are those of its marks, too. */
void json_tail_restart(struct json_tail *t, const struct json_parts *parts);
void json_tail_deinit(struct json_tail *t);
/* Before all else, where "traceEvents" comes first: elements follow, each with a comma before it.
 */
void json_tail_events_first(struct json_tail *t);
/*
 * The kernel's events have not ended: the mark goes to the spool; or, where these come first,
 * leaves, and its length is added to *units.
 */
int json_tail_early_mark(struct json_tail *t, const struct mark *mark, uint64_t *units);
int json_tail_mark(struct json_tail *t, const struct mark *mark);
/* All that is left to say. 0 or -errno. */
int json_tail_close(struct json_tail *t, const struct export_result *result);
