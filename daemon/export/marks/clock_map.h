/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From another clock to the trace clock: points at which both were read, each
 * with the bound of its error. Between two points the line through both, unless the
 * clock was stepped between them; beyond them the nearest one's offset. Of a clock that
 * runs by itself the line through the first and the last point goes on beyond them.
 */
#pragma once

#include "export/trace_info.h"

/* As time passes a clock drifts by so much at most; more is a step. */
#define CLOCK_DRIFT_MAX_PPM 500

struct clock_point {
	uint64_t from, to; /* ns: in the other clock, in the trace clock */
	uint64_t bound;	   /* ns: to is off by so much at most */
};

struct clock_map {
	struct clock_point *points; /* owned; by from, none twice */
	size_t count, cap;
	bool identity; /* both are one clock */
	bool own_rate; /* it runs by itself, and is not stepped */
	bool ticks;    /* and does not count ns, or the trace clock does not */
};

void clock_map_deinit(struct clock_map *map);
/* 0 or -ENOMEM. */
int clock_map_add(struct clock_map *map, const struct clock_point *point);
/* To be called once all points were added, before the functions below. */
void clock_map_seal(struct clock_map *map);

/*
 * The map of a clockid of clock_gettime(2), or of MARK_CLOCK_TSC, by the readings of the stream.
 * -ENOENT: the stream has none of it, or the trace clock is none that a process can read.
 */
int clock_map_of(struct clock_map *ret, const struct trace_info *info, clockid_t clock);

uint64_t clock_map_apply(const struct clock_map *map, uint64_t from, uint64_t *ret_bound);
/* Over all points: trace clock minus the other at the first, the worst bound, ns gained in a
 * second. */
void clock_map_sum(const struct clock_map *map, int64_t *ret_offset, uint64_t *ret_bound,
		   double *ret_drift);
