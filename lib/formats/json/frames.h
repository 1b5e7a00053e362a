/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The member stackFrames, collected until it is written. Trace Viewer refuses a trace whose frames
 * or samples name a frame that is not there, and does not end on frames that call themselves.
 */
#pragma once

#include "base/table.h"
#include "marks/mark.h"
#include "trace/host_numbers.h"

struct json_frame {
	uint64_t key, caller; /* mark_frame_key(); caller 0: none */
	size_t at;	      /* of its text */
	uint32_t bare;	      /* bytes of the text without its caller */
	uint32_t walk;	      /* number of the walk along callers that passed here; 0: none */
};

struct json_frame_slot {
	uint64_t key;	/* 0: free slot */
	uint32_t index; /* of the frame */
};
DECLARE_TABLE(json_frame_slots, struct json_frame_slot);

struct json_frames {
	const struct host_numbers *host; /* as in trace_info; or NULL */
	struct buf text;		 /* of all frames, one after the other */
	struct json_frame *all;		 /* owned */
	uint32_t count, cap;
	uint32_t settled;
	struct json_frame_slots keys;
	struct shares shares; /* bytes */
	uint64_t orphans;     /* frames whose caller is not there or is one of their callees */
};
void json_frames_deinit(struct json_frames *f);

/* 0; the first frame of an id counts. -ENOSPC: too many; -ENOMEM. */
int json_frames_add(struct json_frames *f, const struct mark *frame);
/* Whether the frame that this part of the mark names is there. */
bool json_frames_have(const struct json_frames *f, const struct mark *mark, enum mark_part part);
/* Finds orphans. Call it after the last frame, or more often. */
void json_frames_settle(struct json_frames *f);
/* Appends the whole member with a leading comma, or nothing. 0 or -ENOMEM. */
int json_frames_put(struct json_frames *f, struct buf *out);

/* Appends a frame's id as a string: unique among all sources, and machines. */
void json_put_frame_id(const struct json_frames *f, struct buf *out, const struct mark *mark,
		       enum mark_part part);
