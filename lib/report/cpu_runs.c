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

int cpu_runs_keep(struct cpu_runs *r, uint32_t cpu, struct cpu_run run)
{
	struct cpu_run_ring *ring = cpu_runs_of(r, cpu);

	if (!ring || cpu_runs_reserve(r, ring) < 0)
		return -ENOMEM;
	ring->runs[ring->count++ & (ring->cap - 1)] = run;
	return 0;
}
