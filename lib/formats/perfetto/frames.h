/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames of stacks, which come before the marks that have them. */
#pragma once

#include "formats/perfetto/message.h"
#include "marks/mark.h"

struct pf_frames {
	struct pf_frame *slots; /* owned; open addressing */
	uint32_t count, cap;
	size_t bytes;
};
void pf_frames_deinit(struct pf_frames *f);
/* No stack has a number. */
void pf_frames_restart(struct pf_frames *f);
/* 0, -ENOSPC: no more are taken, -ENOMEM. */
int pf_frames_add(struct pf_frames *f, const struct mark *frame);
#define PF_DEPTH_MAX 256
struct pf_stack_frame {
	struct text name, module; /* borrowed */
};
struct pf_stack {
	struct pf_stack_frame frames[PF_DEPTH_MAX]; /* the innermost first */
	unsigned depth;
	uint64_t *number; /* for the caller, of this stack; 0: it has none yet */
};
/* That stack of the mark; false: its frames are not known. Valid until the next frame is added. */
bool pf_frames_get_stack(const struct pf_frames *f, const struct mark *mark, enum mark_part part,
			 struct pf_stack *ret);
/* TrackEvent.callstack: that stack of the mark, if its frames are known. */
void pf_frames_put_stack(const struct pf_frames *f, const struct mark *mark, enum mark_part part,
			 struct buf *event);
