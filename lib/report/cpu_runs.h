/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The last runs of each CPU, to tell who ran there while a task waited. */
#pragma once

#include "report/kind.h"

struct cpu_run {
	const void *runner; /* the caller's; not NULL */
	uint64_t from, to;
	uint64_t before; /* how long the CPU's runs before it took */
};

/* A CPU's last whole runs, by time; they do not overlap. */
struct cpu_run_ring {
	struct cpu_run *runs; /* owned: cap of them, a power of two; NULL: none yet */
	size_t cap;
	uint64_t count; /* of all times; the newest is at (count - 1) % cap */
};

/* All zero: no runs. */
struct cpu_runs {
	struct cpu_run_ring *cpus; /* owned */
	uint32_t cpu_count;
	size_t room; /* for runs, in all CPUs */
};

void cpu_runs_deinit(struct cpu_runs *r);
/*
 * A run begins when the one before it ended. If it also ended before that, a clock ran backwards,
 * and the runs before it are forgotten. 0 or -ENOMEM.
 */
int cpu_runs_keep(struct cpu_runs *r, uint32_t cpu, const void *runner, uint64_t from, uint64_t to);

/* The runs in a wait, the newest first. */
struct runs_within {
	const struct cpu_run_ring *ring; /* NULL: none */
	uint64_t next, from, to;
	uint64_t left; /* of the wait, without those that were told */
};

static inline struct runs_within runs_within(const struct cpu_runs *r, uint32_t cpu, uint64_t from,
					     uint64_t to)
{
	return (struct runs_within){
		.ring = cpu < r->cpu_count ? &r->cpus[cpu] : NULL,
		.from = from,
		.to = to,
		.left = to - from,
	};
}

static inline uint64_t cpu_runs_kept(const struct cpu_run_ring *ring)
{
	return MIN(ring->count, (uint64_t)ring->cap);
}

/* The n-th newest, below cpu_runs_kept(). */
static inline const struct cpu_run *cpu_run_ago(const struct cpu_run_ring *ring, uint64_t n)
{
	return &ring->runs[(ring->count - 1 - n) & (ring->cap - 1)];
}

/* Returns the next runner, and in *ret_ns how long it ran in the wait. NULL: there is none. */
static inline const void *runs_within_next(struct runs_within *w, uint64_t *ret_ns)
{
	const struct cpu_run_ring *ring = w->ring;

	while (ring && w->next < cpu_runs_kept(ring)) {
		const struct cpu_run *run = cpu_run_ago(ring, w->next);
		uint64_t from = MAX(run->from, w->from), to = MIN(run->to, w->to);

		if (run->to <= w->from)
			break;
		w->next++;
		if (from >= to)
			continue;
		w->left -= to - from;
		*ret_ns = to - from;
		return run->runner;
	}
	return NULL;
}

/* How many runs are left in the wait, and in *ret_ns their time; none is left after it. */
uint64_t runs_within_rest(struct runs_within *w, uint64_t *ret_ns);
