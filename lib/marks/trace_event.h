/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inside of trace_file.c: the state of reading one file, and the members of one event. */
#pragma once

#include "marks/frame_ids.h"
#include "marks/gunzip.h"
#include "marks/json_value.h"
#include "marks/trace_file.h"

struct loader {
	struct trace_file *file;
	struct gunzip in;
	struct json_read json;
	uint32_t source;
	/* The event that is being read; its texts lie in buffers of their own. */
	struct mark mark;
	struct buf part[PART_PARTS];
	unsigned seen;		 /* bits of enum seen */
	struct buf stack[2];	 /* raw: at the event's begin and end */
	struct frame_ids frames; /* of raw stacks */
};

enum seen {
	SEEN_PH = 1 << 0,
	SEEN_TS = 1 << 1,
	SEEN_PID = 1 << 2,
	SEEN_TID = 1 << 3,
	SEEN_BAD = 1 << 4, /* a member that is no what it must be */
};

/* Before each event. */
void loader_forget(struct loader *l);
/* One member, whose key was read. What is not as it must be sets SEEN_BAD. 0 or -errno. */
int loader_member(struct loader *l, struct error *err);

/* A string, or a number: of ids in hexadecimal. False: token is neither. */
bool loader_text(struct loader *l, int token, enum mark_part part);
void loader_set_part(struct loader *l, enum mark_part part, const struct buf *from);
