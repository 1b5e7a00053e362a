/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a recording may cost the machine, and what it gives up before it costs
 * more: first how soon it looks at the rings, then events in the order that the
 * request names. Each step is looked at for a second before the next one, and is written into the
 * trace: as a mark at its time, and as a note. Where nothing is left to give up and
 * it still costs twice what it may, the recording ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "daemon/capture/capture.h"

struct overhead {
	unsigned permille;	     /* of one CPU's time; 0: as much as it takes */
	uint64_t since_ns, spent_ns; /* of the second that is looked at */
	unsigned share;		     /* permille, of the last one */
	unsigned beyond;	     /* seconds in a row at more than twice what it may */
	unsigned widened;	     /* times */
	struct overhead_class {
		char *glob;
		struct buf events; /* that it means, "system:event" each, terminated */
	} * shed;		   /* owned */
	size_t shed_count, shed_next;
};

/* Copies what the request says of it. Returns 0 or -ENOMEM. */
int overhead_init(struct overhead *o, const struct capture_overhead *asked);
void overhead_deinit(struct overhead *o);

enum overhead_step {
	OVERHEAD_NONE,
	OVERHEAD_WIDEN,
	OVERHEAD_SHED, /* shed[shed_next - 1] */
	OVERHEAD_END,
};

#define OVERHEAD_WIDEN_MAX 2

/* What was spent until now is no rate: the next look is the first. */
void overhead_begin_anew(struct overhead *o);
/* What is to be done at now_ns, when the recorder has used spent_ns in all. */
enum overhead_step overhead_judge(struct overhead *o, uint64_t now_ns, uint64_t spent_ns);

struct event_matches;

/* Remembers the events of each class. -ENOENT: what is to be shed is not recorded. */
int overhead_find(struct overhead *o, const struct event_matches *matches, struct error *err);

struct capture;

/* To be called at each tick. -ETIME: the recording has to end. */
int overhead_keep(struct capture *c, uint64_t now_ns, struct error *err);
