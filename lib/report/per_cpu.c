/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/per_cpu.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

void per_cpu_init(struct per_cpu *p)
{
	*p = (struct per_cpu){ 0 };
	rows_init(&p->intervals, sizeof(struct cpu_interval), NULL);
}

void per_cpu_deinit(struct per_cpu *p)
{
	rows_deinit(&p->intervals);
	free(p->losses);
}

uint64_t per_cpu_losses(const struct per_cpu *p, uint32_t cpu)
{
	return cpu < p->count ? p->losses[cpu] : 0;
}

int per_cpu_loss(struct per_cpu *p, uint32_t cpu)
{
	if (cpu >= REPORT_CPUS_MAX)
		return 0;
	if (cpu >= p->count) {
		uint32_t from = p->count;

		if (vec_reserve_exact(p->losses, p->count, cpu + 1 - from) < 0)
			return -ENOMEM;
		p->count = cpu + 1;
		for (uint32_t i = from; i <= cpu; i++)
			p->losses[i] = 0;
	}
	p->losses[cpu]++;
	return 0;
}

struct cpu_interval *per_cpu_get(struct per_cpu *p, uint32_t cpu, uint64_t key)
{
	return rows_get(&p->intervals, (struct row_key){ key, cpu });
}

bool per_cpu_begin(struct per_cpu *p, struct cpu_interval *i, uint32_t cpu, uint64_t ts)
{
	uint64_t losses = per_cpu_losses(p, cpu);
	bool cut = i->since && i->losses != losses;

	i->since = ts;
	i->losses = losses;
	i->used = true;
	return cut;
}

enum interval_end per_cpu_end(struct per_cpu *p, struct cpu_interval *i, uint32_t cpu, uint64_t ts,
			      uint64_t *ret_ns)
{
	uint64_t losses = per_cpu_losses(p, cpu), since = i->since;

	i->since = 0;
	if (i->losses != losses || (!since && i->used)) {
		i->losses = losses;
		i->used = true;
		return INTERVAL_CUT;
	}
	i->used = true;
	if (!since)
		return INTERVAL_NO_BEGIN;
	*ret_ns = report_elapsed(since, ts);
	return INTERVAL_WHOLE;
}
