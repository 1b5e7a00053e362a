/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stack frames of marks, by id. A frame arrives before the marks that refer to it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/table.h"
#include "marks/mark.h"

/* Identifies a frame among those of all sources. 0: the mark has no such part. */
uint64_t mark_frame_key(const struct mark *m, enum mark_part part);

DECLARE_TABLE(frame_slots, struct stack_frame);

struct stack_frames {
	struct frame_slots frames;
	struct shares shares; /* bytes */
};
void stack_frames_deinit(struct stack_frames *f);
/* Clears the number of every stack. */
void stack_frames_restart(struct stack_frames *f);
/* 0; -ENOSPC: too many frames; -ENOMEM. */
int stack_frames_add(struct stack_frames *f, const struct mark *frame);

#define STACK_DEPTH_MAX 256
struct stack_place {
	struct text name, module; /* borrowed */
	bool has_code;
	struct frame_code code;
};
struct frame_stack {
	struct stack_place frames[STACK_DEPTH_MAX]; /* the innermost first */
	unsigned depth;
	uint64_t *number; /* for the caller's use: number of this stack; 0: none yet */
};
/* Finds a stack of the mark. False: its frames are unknown. Valid until the next frame is added. */
bool stack_frames_get_stack(const struct stack_frames *f, const struct mark *mark,
			    enum mark_part part, struct frame_stack *ret);
