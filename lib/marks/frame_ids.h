/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Frames of stacks by number: a frame is what it is called and what called it, so
 * that stacks which begin alike share their frames. Known by their hash alone.
 */
#pragma once

#include "marks/mark.h"

#define FRAME_IDS_MAX (UINT32_C(1) << 20)

struct frame_ids {
	uint64_t *hashes; /* owned; open addressing, 0: free */
	uint32_t *ids;	  /* owned; of the hash at the same place */
	uint32_t count, slots;
};
void frame_ids_deinit(struct frame_ids *f);
/*
 * The number of the frame that is called so under parent (0: it is the outermost). 1: it is
 * new, and to be written; 0: it was met before; -ENOSPC: no more are taken; -ENOMEM.
 */
int frame_ids_get(struct frame_ids *f, uint32_t parent, struct text name, struct text module,
		  uint32_t *ret);

/* A frame's number as marks spell it: "stack17". Returns its length. */
uint32_t frame_id_spell(char to[static 16], uint32_t frame);
