/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/cpu_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Runs that are kept for each CPU: at first, and at most; and those of all CPUs beyond the first.
 */
#define RUNS_LEAST 256U
#define RUNS_MOST 65536U
#define RUNS_ALL (16U * 1024 * 1024 / sizeof(struct cpu_run))

void cpu_runs_deinit(struct cpu_runs *r)
{
	for (uint32_t i = 0; i < r->cpu_count; i++)
		free(r->cpus[i].runs);
	free(r->cpus);
	*r = (struct cpu_runs){ 0 };
}

static struct cpu_run_ring *cpu_runs_of(struct cpu_runs *r, uint32_t cpu)
{
	uint32_t from = r->cpu_count, cap = from;

	if (cpu >= from) {
		if (cpu >= REPORT_CPUS_MAX ||
		    vec_reserve(r->cpus, r->cpu_count, cap, cpu + 1 - from) < 0)
			return NULL;
		r->cpu_count = cpu + 1;
		memset(&r->cpus[from], 0, (cpu + 1 - from) * sizeof(*r->cpus));
	}
	return &r->cpus[cpu];
}

/* Makes room for the CPU's first runs, or for twice as many when it is full for the first time. */
static int cpu_runs_reserve(struct cpu_runs *r, struct cpu_run_ring *ring)
{
	const size_t more = ring->cap ?: RUNS_LEAST;
	struct cpu_run *runs;

	if (ring->count != ring->cap)
		return 0;
	if (ring->cap && (ring->cap == RUNS_MOST || r->room + more > RUNS_ALL))
		return 0;
	runs = reallocarray(ring->runs, ring->cap + more, sizeof(*runs));
	if (!runs)
		return -ENOMEM;
	ring->runs = runs;
	ring->cap += more;
	r->room += more;
	return 0;
}

int cpu_runs_keep(struct cpu_runs *r, uint32_t cpu, const void *runner, uint64_t from, uint64_t to)
{
	struct cpu_run_ring *ring = cpu_runs_of(r, cpu);
	struct cpu_run run = { runner, from, to, 0 };

	if (!ring || cpu_runs_reserve(r, ring) < 0)
		return -ENOMEM;
	if (ring->count && cpu_run_ago(ring, 0)->to > to)
		ring->count = 0;
	if (ring->count) {
		const struct cpu_run *last = cpu_run_ago(ring, 0);

		run.from = MAX(from, last->to);
		run.before = last->before + (last->to - last->from);
	}
	if (run.from < run.to)
		ring->runs[ring->count++ & (ring->cap - 1)] = run;
	return 0;
}

/* The number of runs that ended after a time. The newest are tried first: most waits are short. */
static uint64_t cpu_runs_after(const struct cpu_run_ring *ring, uint64_t time)
{
	const uint64_t kept = cpu_runs_kept(ring);
	uint64_t low = 0, high = MIN(kept, 1U);

	while (low < high && cpu_run_ago(ring, high - 1)->to > time) {
		low = high;
		high = MIN(2 * high, kept);
	}
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (cpu_run_ago(ring, middle)->to > time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The CPU's run time until a time that lies in this run, or behind it. */
static uint64_t cpu_run_time_until(const struct cpu_run *run, uint64_t time)
{
	return run->before + (MIN(run->to, time) - MIN(run->from, time));
}

uint64_t runs_within_rest(struct runs_within *w, uint64_t *ret_ns)
{
	const struct cpu_run_ring *ring = w->ring;
	uint64_t first, count;

	*ret_ns = 0;
	if (!ring || w->from >= w->to)
		return 0;
	first = cpu_runs_after(ring, w->from);
	while (w->next < first && cpu_run_ago(ring, w->next)->from >= w->to)
		w->next++;
	if (w->next >= first)
		return 0;
	*ret_ns = cpu_run_time_until(cpu_run_ago(ring, w->next), w->to) -
		  cpu_run_time_until(cpu_run_ago(ring, first - 1), w->from);
	w->left -= *ret_ns;
	count = first - w->next;
	w->next = first;
	return count;
}
