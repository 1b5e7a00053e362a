/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers the frames of stacks. A frame is its name plus its caller, so stacks with the same outer
 * part share frames. Only hashes are kept.
 */
#pragma once

#include "base/table.h"
#include "marks/mark.h"

#define FRAME_IDS_MAX (UINT32_C(1) << 20)

struct frame_id {
	uint64_t hash; /* 0: a free slot */
	uint32_t id;
};
DECLARE_TABLE(frame_ids, struct frame_id);
void frame_ids_deinit(struct frame_ids *f);
/*
 * The number of a frame by name, module, address (0: any) and parent (0: outermost). 1: new, the
 * caller must write it; 0: known; -ENOSPC: too many frames; -ENOMEM.
 */
int frame_ids_get(struct frame_ids *f, uint32_t parent, struct text name, struct text module,
		  uint64_t address, uint32_t *ret);

/* Formats a frame number as marks refer to it: "stack17". Returns the length. */
uint32_t frame_id_spell(char to[static 16], uint32_t frame);
/* Whether the id could be one of these. */
bool frame_id_is_spelled(struct text id);
