/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The exporter's messages: one each time that a condition of a trigger is met. */
#pragma once

#include "trigger.h"

struct firings {
	const struct triggers *triggers;
	int pipe;
	struct buf in; /* a part of a frame */
};

/*
 * Reads once, and calls back for each firing. m->more: that many further ones, without details.
 * 0: the exporter has ended.
 */
int firings_read(struct firings *f, void (*take)(const Traced__Control__Firing *m, void *data),
		 void *data, struct error *err);
/* Appends "sched.delay > 5ms: pulse (1234) on CPU 1, 6.123 ms at 12345.678901". */
void firing_put(const struct triggers *t, const Traced__Control__Firing *m, struct buf *out);
