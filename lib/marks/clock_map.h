/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps times of another clock to the trace clock. It is built from points at which both clocks were
 * read, each with an error bound.
 *
 * Between two points: the line through both, unless the clock was stepped in between. Beyond them:
 * the nearest point's offset. A free-running clock (own_rate) continues along the line through its
 * first and last point.
 *
 * The error bound is that of the neighbouring points. For a free-running clock it grows with the
 * distance: between points by CLOCK_WANDER_PPM, since its rate may vary; beyond them also by the
 * uncertainty of the rate.
 */
#pragma once

#include "trace/trace_info.h"

/* Largest drift of a clock; a larger change is a step. */
#define CLOCK_DRIFT_MAX_PPM 500
/* Largest change of a quartz's rate between two points, mainly by temperature. */
#define CLOCK_WANDER_PPM 1

struct clock_point {
	uint64_t from, to; /* ns: in the other clock, in the trace clock */
	uint64_t bound;	   /* ns: largest error of `to` */
	const char *id;	   /* id of the sync mark of this point; NULL: none; borrowed */
};

struct clock_map {
	struct clock_point *points; /* owned; sorted by `from`, no duplicates */
	size_t count, cap;
	uint64_t first_to, last_to;	/* first and last `to` of all points */
	const struct host_clock *moved; /* borrowed; moves each time first; NULL: none does */
	bool identity;			/* both are one clock */
	bool own_rate;			/* free-running: never stepped */
	bool ticks;			/* a clock of the pair does not count ns */
};

void clock_map_deinit(struct clock_map *map);
/* 0 or -ENOMEM. */
int clock_map_add(struct clock_map *map, const struct clock_point *point);
/* Call once all points were added, before the functions below. */
void clock_map_seal(struct clock_map *map);

/* The reading of `clock` in a snapshot; NULL: none, or an invalid one. */
const Traced__Capture__ClockReading *clock_map_reading(const Traced__Capture__Clocks *c,
						       clockid_t clock);
/*
 * True if the trace clock can only be tied by the sync marks in the kernel's ring. That is
 * "global": no process can read it, but all CPUs share it and it counts time. Not for "local" or
 * "perf": a mark that one CPU wrote says nothing about another CPU's clock.
 */
bool clock_map_wants_marks(const struct trace_info *info);
/*
 * Builds the map of a clockid of clock_gettime(2), or of MARK_CLOCK_TSC, from the clock readings of
 * the stream. "global" is tied by sync marks, if info has them. -ENOENT: nothing ties the two
 * clocks.
 */
int clock_map_of(struct clock_map *ret, const struct trace_info *info, clockid_t clock);
/* The same for times as the machine recorded them, which info->moved has not moved yet. */
int clock_map_of_recorded(struct clock_map *ret, const struct trace_info *info, clockid_t clock);
/* The recording's end by the trace clock, with its error; 0: not known, or not yet. */
uint64_t clock_map_end(const struct trace_info *info, uint64_t *ret_bound);

/* True if a change over that span exceeds drift: the clock was set, or it stood still. */
bool clock_is_step(uint64_t change, uint64_t span, uint64_t bound);
/* True if the clock was stepped between two of the points. */
bool clock_map_stepped(const struct clock_map *map);
uint64_t clock_map_apply(const struct clock_map *map, uint64_t from, uint64_t *ret_bound);
/* The largest error bound of times from first to last, in the other clock. */
uint64_t clock_map_worst(const struct clock_map *map, uint64_t first, uint64_t last);
struct clock_sum {
	int64_t offset; /* trace clock minus the other, at the first point */
	uint64_t bound; /* largest bound of the points */
	double drift;	/* ns gained per second, from the first point to the last */
	double drift_bound;
	/* enough points, far enough apart, and no step in between */
	bool drift_known;
};
void clock_map_sum(const struct clock_map *map, struct clock_sum *ret);
