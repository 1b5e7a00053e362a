/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/clock_map.h"

#include <string.h>
#include <time.h>

#include "base/io.h"
#include "base/search.h"
#include "base/vec.h"
#include "base/wide.h"
#include "trace/host_clock.h"
#include "traced/mark_record.h"

void clock_map_deinit(struct clock_map *map)
{
	free(map->points);
	*map = (struct clock_map){ 0 };
}

int clock_map_add(struct clock_map *map, const struct clock_point *point)
{
	return vec_push(map->points, map->count, map->cap, *point);
}

static int point_by_time(const void *a, const void *b)
{
	const struct clock_point *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->bound < y->bound ? -1 : x->bound > y->bound;
}

void clock_map_seal(struct clock_map *map)
{
	size_t kept = 0;

	if (map->count)
		qsort(map->points, map->count, sizeof(*map->points), point_by_time);
	/* Keeps the point with the smallest bound among those with the same `from`. */
	for (size_t i = 0; i < map->count; i++)
		if (!kept || map->points[i].from != map->points[kept - 1].from)
			map->points[kept++] = map->points[i];
	map->count = kept;
	map->first_to = map->last_to = kept ? map->points[0].to : 0;
	for (size_t i = 1; i < kept; i++) {
		map->first_to = MIN(map->first_to, map->points[i].to);
		map->last_to = MAX(map->last_to, map->points[i].to);
	}
}

/* The clockid of a trace clock that clock_gettime(2) can read; -1: none. */
static clockid_t trace_clockid(const char *name)
{
	static const struct {
		const char *name;
		clockid_t id;
	} clocks[] = {
		{ "boot", CLOCK_BOOTTIME },	     { "mono", CLOCK_MONOTONIC },
		{ "mono_raw", CLOCK_MONOTONIC_RAW }, { "tai", CLOCK_TAI },
		{ "x86-tsc", MARK_CLOCK_TSC },
	};

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		if (strcmp(name, clocks[i].name) == 0)
			return clocks[i].id;
	return -1;
}

bool clock_map_wants_marks(const struct trace_info *info)
{
	return strcmp(info->header->trace_clock, "global") == 0;
}

const Traced__Capture__ClockReading *clock_map_reading(const Traced__Capture__Clocks *c,
						       clockid_t clock)
{
	for (size_t i = 0; i < c->n_readings; i++) {
		const Traced__Capture__ClockReading *r = c->readings[i];

		if (r->clock == (uint32_t)clock && r->boot_after_ns >= r->boot_before_ns)
			return r;
	}
	return NULL;
}

/* The middle of a clock's reading, in CLOCK_BOOTTIME. */
static uint64_t reading_middle(const Traced__Capture__ClockReading *r, uint64_t *bound)
{
	uint64_t bracket = r->boot_after_ns - r->boot_before_ns;

	*bound += (bracket + 1) / 2;
	return r->boot_before_ns + bracket / 2;
}

/* Maps by the sync marks in the kernel's ring, each written between two readings of BOOTTIME. */
static int map_by_marks(struct clock_map *ret, const struct trace_info *info, clockid_t clock)
{
	int r = 0;

	ret->own_rate = true;
	for (size_t i = 0; r == 0 && i < info->clock_count; i++) {
		const Traced__Capture__Clocks *c = info->clocks[i];
		const Traced__Capture__ClockReading *from = clock_map_reading(c, clock);
		const struct kernel_sync *mark =
			*c->sync_id ? sync_scan_find(&info->syncs, c->sync_id) : NULL;
		struct clock_point p = { .bound = 0 };

		if (!mark || c->sync_after_ns < c->sync_before_ns ||
		    (!from && clock != CLOCK_BOOTTIME))
			continue;
		p.to = mark->ts;
		p.id = mark->id;
		p.from = c->sync_before_ns + (c->sync_after_ns - c->sync_before_ns) / 2;
		p.bound = (c->sync_after_ns - c->sync_before_ns + 1) / 2;
		/* The trace clock was read right after; both clocks advanced by the same time. */
		if (clock != CLOCK_BOOTTIME)
			p.from = from->value_ns - (reading_middle(from, &p.bound) - p.from);
		r = clock_map_add(ret, &p);
	}
	clock_map_seal(ret);
	return r ?: ret->count ? r : -ENOENT;
}

int clock_map_of(struct clock_map *ret, const struct trace_info *info, clockid_t clock)
{
	clockid_t trace = trace_clockid(info->header->trace_clock);
	int r = 0;

	*ret = (struct clock_map){
		.identity = clock == trace,
		.ticks = clock == MARK_CLOCK_TSC || trace == MARK_CLOCK_TSC,
		.own_rate = clock == CLOCK_MONOTONIC_RAW || trace == CLOCK_MONOTONIC_RAW,
	};
	ret->own_rate |= ret->ticks;
	if (trace < 0)
		return info->syncs.done && clock_map_wants_marks(info)
			       ? map_by_marks(ret, info, clock)
			       : -ENOENT;
	for (size_t i = 0; r == 0 && i < info->clock_count && !ret->identity; i++) {
		const Traced__Capture__ClockReading *from = NULL, *to = NULL;
		struct clock_point p = { 0 };
		if (clock != CLOCK_BOOTTIME && !(from = clock_map_reading(info->clocks[i], clock)))
			continue;
		if (trace != CLOCK_BOOTTIME && !(to = clock_map_reading(info->clocks[i], trace)))
			continue;
		if (from && to) {
			/*
			 * The clocks were read one after the other; both advanced by the same time
			 * in between.
			 */
			p.from = from->value_ns;
			p.to = to->value_ns +
			       (reading_middle(from, &p.bound) - reading_middle(to, &p.bound));
		} else if (from) {
			p.from = from->value_ns;
			p.to = reading_middle(from, &p.bound);
		} else if (to) {
			p.from = reading_middle(to, &p.bound);
			p.to = to->value_ns;
		}
		r = clock_map_add(ret, &p);
	}
	clock_map_seal(ret);
	return r ?: ret->identity || ret->count ? r : -ENOENT;
}

int clock_map_of_recorded(struct clock_map *ret, const struct trace_info *info, clockid_t clock)
{
	int r = clock_map_of(ret, info, clock);

	/* Readings of other clocks are tied to BOOTTIME's, which are moved. */
	if (clock == CLOCK_BOOTTIME)
		ret->moved = info->moved;
	return r;
}

static uint64_t time_distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/*
 * How much the offsets of two points differ. After a clock was set back, the later point may sort
 * first.
 */
static uint64_t offset_change(const struct clock_point *a, const struct clock_point *b)
{
	int64_t d = (int64_t)((b->to - a->to) - (b->from - a->from));

	return d < 0 ? -(uint64_t)d : (uint64_t)d;
}

bool clock_is_step(uint64_t change, uint64_t span, uint64_t bound)
{
	return change > span / 1000000 * CLOCK_DRIFT_MAX_PPM + bound + 1000;
}

static bool points_stepped(const struct clock_point *a, const struct clock_point *b)
{
	return clock_is_step(offset_change(a, b), b->from - a->from, a->bound + b->bound);
}

bool clock_map_stepped(const struct clock_map *map)
{
	for (size_t i = 0; !map->own_rate && i + 1 < map->count; i++)
		if (points_stepped(&map->points[i], &map->points[i + 1]))
			return true;
	return false;
}

static bool points_drift_too_much(const struct clock_point *a, const struct clock_point *b)
{
	return clock_is_step(offset_change(a, b), b->from - a->from, 0);
}

/* Trace time between two points that have a forward step in between. */
static uint64_t time_between(const struct clock_point *a, const struct clock_point *b)
{
	return b->to > a->to ? b->to - a->to : 0;
}

/*
 * True if only the nearest point's offset can hold for a time between two points with a step in
 * between. The other offset would place it before the first point, after the last, or, after a step
 * forward, outside the two.
 */
static bool nearest_is_clear(const struct clock_map *map, const struct clock_point *a,
			     const struct clock_point *b, uint64_t from)
{
	uint64_t after = from - a->from, before = b->from - from, span = time_between(a, b);

	if (after < before ? before > b->to - map->first_to : after > map->last_to - a->to)
		return true;
	return span && (after > span) != (before > span);
}

/*
 * Trace clock ticks per tick of the other clock, over all points. 1 for a single point, or for
 * points too close together.
 */
static double map_rate(const struct clock_map *map)
{
	const struct clock_point *first = map->points, *last = first + map->count - 1;
	double r;

	if (map->count < 2)
		return 1;
	r = (double)(last->to - first->to) / (double)(last->from - first->from);
	return map->ticks || (r - 1) * 1e6 * ((r > 1) - (r < 1)) <= CLOCK_DRIFT_MAX_PPM ? r : 1;
}

/* Follows the slope between first and last point, through p. Clamped at 0. */
static uint64_t map_extend(const struct clock_map *map, const struct clock_point *p, uint64_t from)
{
	double far = (double)(int64_t)(from - p->from) * map_rate(map);
	int64_t to;

	if (far < -9e18 || far > 9e18 ||
	    __builtin_add_overflow((int64_t)p->to, (int64_t)(far + (far < 0 ? -0.5 : 0.5)), &to))
		return from;
	return to < 0 ? 0 : (uint64_t)to;
}

/* Applies the offset of one point. Clamped at 0. */
static uint64_t point_shift(const struct clock_point *p, uint64_t from)
{
	int64_t to;

	if (__builtin_sub_overflow((int64_t)p->to, (int64_t)p->from, &to) ||
	    __builtin_add_overflow(to, (int64_t)from, &to))
		return from;
	return to < 0 ? 0 : (uint64_t)to;
}

/* Largest error of the rate, as a fraction of the distance. */
static double map_rate_error(const struct clock_map *map)
{
	const struct clock_point *first = map->points, *last = first + map->count - 1;
	double most = map->ticks ? 1 : CLOCK_DRIFT_MAX_PPM * 1e-6;

	if (map->count < 2 ||
	    (!map->ticks && map_rate(map) == 1 && last->to - first->to != last->from - first->from))
		return most;
	return MIN(most, (double)(first->bound + last->bound) / (double)(last->to - first->to) +
				 CLOCK_WANDER_PPM * 1e-6);
}

/*
 * The error that distance from the points a and b adds to their bounds. a == b: the time is beyond
 * them.
 */
static uint64_t map_error_growth(const struct clock_map *map, const struct clock_point *a,
				 const struct clock_point *b, uint64_t to)
{
	uint64_t far = MIN(time_distance(to, a->to), time_distance(to, b->to));

	if (!map->own_rate || !far)
		return 0;
	return (uint64_t)((double)far * (a == b ? map_rate_error(map) : CLOCK_WANDER_PPM * 1e-6) +
			  0.5);
}

uint64_t clock_map_apply(const struct clock_map *map, uint64_t from, uint64_t *ret_bound)
{
	const struct clock_point *a, *b;
	size_t low;
	uint64_t to;

	*ret_bound = 0;
	if (map->moved)
		from = host_clock_apply(map->moved, from);
	if (map->identity || !map->count)
		return from;
	low = lower_bound(i, map->count, map->points[i].from <= from);
	b = &map->points[MIN(low, map->count - 1)];
	a = low ? &map->points[low - 1] : b;
	*ret_bound = MAX(a->bound, b->bound);
	if (a == b) {
		to = map->own_rate ? map_extend(map, b, from) : point_shift(b, from);
		*ret_bound += map_error_growth(map, a, b, to);
		return to;
	}
	if (!map->ticks && points_stepped(a, b)) {
		*ret_bound += nearest_is_clear(map, a, b, from) ? 0 : offset_change(a, b);
		a = from - a->from < b->from - from ? a : b;
		return point_shift(a, from);
	}
	/* The rate is impossible: the bounds exceed the distance between the points. */
	if (map->own_rate && !map->ticks && points_drift_too_much(a, b)) {
		a = a->bound <= b->bound ? a : b;
		to = point_shift(a, from);
		*ret_bound = a->bound + (uint64_t)((double)time_distance(to, a->to) *
						   CLOCK_DRIFT_MAX_PPM * 1e-6);
		return to;
	}
	to = a->to + mul_div(from - a->from, b->to - a->to, b->from - a->from);
	/* On the line, each point's error is weighted by how near it is. */
	if (map->own_rate)
		*ret_bound = mul_div(a->bound, b->from - from, b->from - a->from) +
			     mul_div(b->bound, from - a->from, b->from - a->from) + 1;
	*ret_bound += map_error_growth(map, a, b, to);
	return to;
}

uint64_t clock_map_worst(const struct clock_map *map, uint64_t first, uint64_t last)
{
	uint64_t worst, bound;

	clock_map_apply(map, first, &worst);
	clock_map_apply(map, last, &bound);
	worst = MAX(worst, bound);
	/* The error is largest at the middle between two points, or next to it. */
	for (size_t i = 0; i < map->count; i++) {
		const struct clock_point *p = &map->points[i];
		uint64_t at = p->from, next = at;

		/* After a step forward larger than the elapsed time, no time maps to the middle. */
		if (i + 1 < map->count && (map->own_rate || !time_between(p, p + 1) ||
					   (p[1].from - at) / 2 <= time_between(p, p + 1)))
			next += (p[1].from - at) / 2;
		clock_map_apply(map, MIN(MAX(at, first), last), &bound);
		worst = MAX(worst, bound);
		clock_map_apply(map, MIN(MAX(next, first), last), &bound);
		worst = MAX(worst, bound);
	}
	return worst;
}

void clock_map_sum(const struct clock_map *map, struct clock_sum *ret)
{
	const struct clock_point *first, *last;

	*ret = (struct clock_sum){ .drift_known = map->identity };
	if (map->identity || !map->count)
		return;
	first = map->points;
	last = first + map->count - 1;
	ret->offset = (int64_t)(first->to - first->from);
	for (size_t i = 0; i < map->count; i++)
		ret->bound = MAX(ret->bound, map->points[i].bound);
	if (map->count < 2 || clock_map_stepped(map))
		return;
	ret->drift =
		((double)(last->to - first->to) / (double)(last->from - first->from) - 1) * 1e9;
	ret->drift_bound =
		(double)(first->bound + last->bound) / (double)(last->to - first->to) * 1e9;
	ret->drift_known = map->ticks || ret->drift_bound < CLOCK_DRIFT_MAX_PPM * 1e3;
}

uint64_t clock_map_end(const struct trace_info *info, uint64_t *ret_bound)
{
	_cleanup_(clock_map_deinit) struct clock_map map = { 0 };

	if (!info->end || !info->end->boot_ns || clock_map_of(&map, info, CLOCK_BOOTTIME) < 0)
		return 0;
	return clock_map_apply(&map, info->end->boot_ns, ret_bound);
}
