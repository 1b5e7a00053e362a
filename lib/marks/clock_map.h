/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From another clock to the trace clock: points at which both were read, each
 * with the bound of its error. Between two points the line through both, unless the
 * clock was stepped between them; beyond them the nearest one's offset. Of a clock that
 * runs by itself the line through the first and the last point goes on beyond them.
 *
 * The bound of an error is that of the points next to it. Of a clock that runs by itself it grows
 * with the distance to them: between two by CLOCK_WANDER_PPM, as its rate may change; beyond
 * them also by what the points leave open of its rate.
 */
#pragma once

#include "trace/trace_info.h"

/* As time passes a clock drifts by so much at most; more is a step. */
#define CLOCK_DRIFT_MAX_PPM 500
/* So much a quartz's rate may differ from its mean between two points: temperature, above all. */
#define CLOCK_WANDER_PPM 1

struct clock_point {
	uint64_t from, to; /* ns: in the other clock, in the trace clock */
	uint64_t bound;	   /* ns: to is off by so much at most */
	const char *id;	   /* of the sync that it is; NULL: none; borrowed */
};

struct clock_map {
	struct clock_point *points; /* owned; by from, none twice */
	size_t count, cap;
	uint64_t first_to, last_to; /* of all points */
	bool identity;		    /* both are one clock */
	bool own_rate;		    /* it runs by itself, and is not stepped */
	bool ticks;		    /* and does not count ns, or the trace clock does not */
};

void clock_map_deinit(struct clock_map *map);
/* 0 or -ENOMEM. */
int clock_map_add(struct clock_map *map, const struct clock_point *point);
/* To be called once all points were added, before the functions below. */
void clock_map_seal(struct clock_map *map);

/* The reading of clock in a snapshot; NULL: none, or one that can't be. */
const Traced__Capture__ClockReading *clock_map_reading(const Traced__Capture__Clocks *c,
						       clockid_t clock);
/*
 * Of the clocks that no process can read one, "global", is the same on all CPUs and counts time, so
 * that it can be tied by the sync marks in the kernel's ring: a mark that one CPU wrote tells
 * nothing of another's "local" or "perf".
 */
bool clock_map_wants_marks(const struct trace_info *info);
/*
 * The map of a clockid of clock_gettime(2), or of MARK_CLOCK_TSC, by the readings of the stream.
 * "global" is tied by marks, if info has them. -ENOENT: nothing ties the two.
 */
int clock_map_of(struct clock_map *ret, const struct trace_info *info, clockid_t clock);

/* Whether so much, in so long, is more than a clock drifts: it was set, or it stood still. */
bool clock_is_step(uint64_t change, uint64_t span, uint64_t bound);
/* It was, between two of the points. */
bool clock_map_stepped(const struct clock_map *map);
uint64_t clock_map_apply(const struct clock_map *map, uint64_t from, uint64_t *ret_bound);
/* The worst bound of times from first to last, of the other clock. */
uint64_t clock_map_worst(const struct clock_map *map, uint64_t first, uint64_t last);
struct clock_sum {
	int64_t offset; /* trace clock minus the other, at the first point */
	uint64_t bound; /* the worst of the points' */
	double drift;	/* ns gained in a second, from the first point to the last */
	double drift_bound;
	/* The points are so many and so far apart that it means something, and it was not set. */
	bool drift_known;
};
void clock_map_sum(const struct clock_map *map, struct clock_sum *ret);
