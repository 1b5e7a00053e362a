/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report `cpus`: how busy each CPU was, and with whom most. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "report/group.h"
#include "report/scheduler.h"

/* A task's time on one CPU. */
struct cpus_share {
	struct group group;
	uint64_t time;
};

struct cpus_cpu {
	bool seen;
	uint64_t busy, idle, runs, cut, open;
};

struct cpus {
	struct report report;
	struct rows shares;
	struct cpus_cpu *cpus; /* owned */
	uint32_t cpu_count;
};

static struct cpus_cpu *cpus_cpu_of(struct cpus *c, uint32_t cpu)
{
	uint32_t from = c->cpu_count, cap = from;

	if (cpu >= from) {
		if (cpu >= REPORT_CPUS_MAX ||
		    vec_reserve(c->cpus, c->cpu_count, cap, cpu + 1 - from) < 0)
			return NULL;
		c->cpu_count = cpu + 1;
		memset(&c->cpus[from], 0, (cpu + 1 - from) * sizeof(*c->cpus));
	}
	c->cpus[cpu].seen = true;
	return &c->cpus[cpu];
}

static int cpus_add_share(struct cpus *c, const struct sched_span *span)
{
	const struct sched_task *t = span->task;
	const struct row_key cpu = { span->cpu, 0 };
	struct cpus_share *share =
		group_find(&c->shares, GROUP_THREAD, t->known, t->tid, span->cpu, &cpu);

	if (!share)
		return -ENOMEM;
	group_begin(c->report.env, &c->shares, &share->group, GROUP_THREAD, t->known, t->tid,
		    span->cpu);
	share->time += span->to - span->from;
	return 0;
}

static int cpus_on_ran(struct report *report, const struct sched_span *span,
		       const struct sched_task *next _unused_)
{
	struct cpus *c = container_of(report, struct cpus, report);
	struct cpus_cpu *cpu;

	if (span->cpu == UINT32_MAX || !selection_has_cpu(report->env->selection, span->cpu))
		return 0;
	cpu = cpus_cpu_of(c, span->cpu);
	if (!cpu)
		return -ENOMEM;
	cpu->cut += span->state == SPAN_CUT;
	cpu->open += span->state == SPAN_OPEN;
	if (span->state != SPAN_WHOLE)
		return 0;
	cpu->busy += span->to - span->from;
	cpu->runs += !span->part;
	return cpus_add_share(c, span);
}

static int cpus_on_idled(struct report *report, uint32_t number, uint64_t from, uint64_t to,
			 enum span_state state)
{
	struct cpus *c = container_of(report, struct cpus, report);
	struct cpus_cpu *cpu;

	if (!selection_has_cpu(report->env->selection, number))
		return 0;
	cpu = cpus_cpu_of(c, number);
	if (!cpu)
		return -ENOMEM;
	cpu->cut += state == SPAN_CUT;
	cpu->open += state == SPAN_OPEN;
	if (state == SPAN_WHOLE)
		cpu->idle += to - from;
	return 0;
}

static int cpus_open(struct report **ret, struct report_env *env)
{
	struct cpus *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->report.env = env;
	rows_init(&c->shares, sizeof(struct cpus_share), NULL);
	*ret = &c->report;
	if (!scheduler_has_idle(env->scheduler))
		return -ENODATA;
	return MIN(scheduler_listen(env->scheduler,
				    &(struct sched_listener){
					    .report = &c->report,
					    .wants_all = true,
					    .ran = cpus_on_ran,
					    .idled = cpus_on_idled,
				    }),
		   0);
}

static const struct column cpus_columns[] = {
	COLUMN("cpu", COLUMN_NUMBER),
	COLUMN("busy", COLUMN_PERMILLE, .adds = ADDS_REMAINDER, .of = "idle", .over = "known"),
	COLUMN("known", COLUMN_TIME),
	COLUMN("idle", COLUMN_TIME),
	COLUMN("runs", COLUMN_COUNT),
	COLUMN("most", COLUMN_TEXT, .adds = ADDS_NOT),
	COLUMN("most-tid", COLUMN_NUMBER, .adds = ADDS_NOT),
	COLUMN("most-time", COLUMN_TIME, .adds = ADDS_NOT),
	COLUMN("cut", COLUMN_COUNT),
	COLUMN("open", COLUMN_COUNT),
};

/* The task that ran longest on each CPU; an array of the caller's, of cpu_count. */
static void cpus_find_most(const struct cpus *c, const struct cpus_share **most)
{
	for (uint32_t i = 0; i < c->shares.count; i++) {
		const struct cpus_share *share = rows_at(&c->shares, i);
		const struct cpus_share **best = &most[share->group.cpu];

		if (!*best || share->time > (*best)->time)
			*best = share;
	}
}

static void cpus_put_row(struct table *t, uint32_t number, const struct cpus_cpu *cpu,
			 const struct cpus_share *most)
{
	table_put_number(t, number);
	table_put_count(t, TABLE_DERIVED);
	table_put_count(t, cpu->busy + cpu->idle);
	table_put_count(t, cpu->idle);
	table_put_count(t, cpu->runs);
	if (most) {
		group_put(t, GROUP_THREAD, &most->group);
	} else {
		table_put_text(t, TEXT(""));
		table_put_number(t, 0);
	}
	table_put_count(t, most ? most->time : 0);
	table_put_count(t, cpu->cut);
	table_put_count(t, cpu->open);
}

static int cpus_close(struct report *report, struct table **ret)
{
	struct cpus *c = container_of(report, struct cpus, report);
	const struct cpus_share **most =
		calloc(c->cpu_count + 1, sizeof(const struct cpus_share *));
	int r = most ? table_new(ret, "cpus", cpus_columns, ARRAY_SIZE(cpus_columns), NULL)
		     : -ENOMEM;

	if (r == 0) {
		cpus_find_most(c, most);
		for (uint32_t i = 0; i < c->cpu_count; i++)
			if (c->cpus[i].seen)
				cpus_put_row(*ret, i, &c->cpus[i], most[i]);
	}
	free(most);
	if (r == 0)
		group_note(*ret, GROUP_THREAD, &c->shares);
	return r;
}

static void cpus_free(struct report *report)
{
	struct cpus *c = container_of(report, struct cpus, report);

	rows_deinit(&c->shares);
	free(c->cpus);
	free(c);
}

const struct report_kind report_cpus = {
	.about = {
		.name = "cpus",
		.summary = "how busy each CPU was, and with whom most",
		.is_usual = true,
		.events = "sched",
	},
	.open = cpus_open,
	.close = cpus_close,
	.free = cpus_free,
};
