/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames of stacks, which come before the marks that have them. */
#pragma once

#include "export/marks/mark.h"
#include "export/perfetto/message.h"

struct pf_frames {
	struct pf_frame *slots; /* owned; open addressing */
	uint32_t count, cap;
	size_t bytes;
};
void pf_frames_deinit(struct pf_frames *f);
/* 0, -ENOSPC: no more are taken, -ENOMEM. */
int pf_frames_add(struct pf_frames *f, const struct mark *frame);
/* TrackEvent.callstack: that stack of the mark, if its frames are known. */
void pf_frames_put_stack(const struct pf_frames *f, const struct mark *mark, enum mark_part part,
			 struct buf *event);
