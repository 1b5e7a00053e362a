/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The last windows of `tracectl top` as one: counts and times are means, of which a window's weight
 * halves in two seconds; the largest values and 99th percentiles are the largest of all windows.
 * So what happened a moment ago is still seen.
 */
#pragma once

#include "report/frame.h"

#define TOP_DECAY_WINDOWS 8
#define TOP_DECAY_HALF_NS UINT64_C(2000000000)

struct top_decay {
	struct frame_tables windows[TOP_DECAY_WINDOWS]; /* the newest first */
	size_t count;
};
void top_decay_deinit(struct top_decay *d);

/* Takes the newest window; *window is empty then. */
void top_decay_add(struct top_decay *d, struct frame_tables *window);
/*
 * Makes tables of all windows, for as long as no window is added. There must be one. 0 or -ENOMEM.
 */
int top_decay_make(const struct top_decay *d, struct frame_tables *ret);
