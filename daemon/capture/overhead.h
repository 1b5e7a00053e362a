/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps a recording below its CPU limit. First the rings are read less often, then events are shed
 * in the order that the request names. Each step is observed for a second before the next one, and
 * is written into the trace, as a mark at its time and as a note. If nothing is left to shed and
 * the cost is still twice the limit, the recording ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/io.h"
#include "daemon/capture/capture.h"

struct overhead {
	unsigned permille; /* limit, of one CPU; 0: none */
	uint64_t since_ns,
		spent_ns; /* start of the second under observation, and CPU time spent in it */
	unsigned share;	  /* permille in the last second */
	unsigned beyond;  /* consecutive seconds above twice the limit */
	unsigned widened; /* number of OVERHEAD_WIDEN steps */
	struct overhead_class {
		char *glob;
		struct buf events; /* the class's events, "system:event" each, NUL-terminated */
	} * shed;		   /* owned */
	size_t shed_count, shed_next;
};

/* Copies the request's limits. Returns 0 or -ENOMEM. */
int overhead_init(struct overhead *o, const struct capture_overhead *asked);
void overhead_deinit(struct overhead *o);

enum overhead_step {
	OVERHEAD_NONE,
	OVERHEAD_WIDEN,
	OVERHEAD_SHED, /* shed[shed_next - 1] */
	OVERHEAD_END,
};

#define OVERHEAD_WIDEN_MAX 2
/* Time for which a step is observed before the next one. */
#define OVERHEAD_LOOK_NS NSEC_PER_SEC

/* Discards the time spent so far: the next judgement starts a new measurement. */
void overhead_restart(struct overhead *o);
/* Decides the next step at now_ns, given spent_ns of CPU time used in all. */
enum overhead_step overhead_judge(struct overhead *o, uint64_t now_ns, uint64_t spent_ns);

struct event_matches;

/* Stores the events of each class. -ENOENT: a class to shed is not recorded. */
int overhead_find(struct overhead *o, const struct event_matches *matches, struct error *err);
