/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internal to trace_file.c: state of reading one file, and the members of one event. */
#pragma once

#include "marks/frame_ids.h"
#include "marks/gunzip.h"
#include "marks/json_value.h"
#include "marks/trace_file.h"

struct file_reader {
	struct trace_file *file;
	struct gunzip in;
	struct json_read json;
	uint32_t source;
	/* The current event; its texts lie in separate buffers. */
	struct mark mark;
	struct buf part[PART_PARTS];
	unsigned seen;		 /* bits of SEEN_... */
	struct buf stack[2];	 /* raw stacks at the event's begin and end */
	struct frame_ids frames; /* frames of raw stacks */
};

enum seen {
	SEEN_PH = 1 << 0,
	SEEN_TS = 1 << 1,
	SEEN_PID = 1 << 2,
	SEEN_TID = 1 << 3,
	SEEN_NAME = 1 << 5,
	SEEN_BAD = 1 << 4, /* a member of wrong type or value */
};

/* Resets the state before each event. */
void file_reader_forget(struct file_reader *l);
/* Reads one member after its key. Sets SEEN_BAD on wrong types or values. 0 or -errno. */
int file_reader_member(struct file_reader *l, struct error *err);

/* Accepts a string, or a number; ids become hexadecimal. False: another token. */
bool file_reader_text(struct file_reader *l, int token, enum mark_part part);
/* The same for the id of a frame: makes it differ from those of frames of raw stacks. */
bool file_reader_frame(struct file_reader *l, int token, enum mark_part part);
