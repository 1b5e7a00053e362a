/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The report `timerlat`: how late each CPU's timer interrupt came, and how late the thread ran that
 * it wakes, as the kernel's tracer of that name measured it.
 */
#include <errno.h>
#include <stdlib.h>

#include "report/kind.h"
#include "report/recorded.h"

/* The kernel's contexts: the interrupt, the tracer's thread, its return to user space. */
enum timerlat_context { TIMERLAT_IRQ, TIMERLAT_THREAD, TIMERLAT_USER, TIMERLAT_CONTEXTS };

struct timerlat_cpu {
	uint32_t cpu;
	struct histogram late[TIMERLAT_CONTEXTS];
	uint64_t max_at[TIMERLAT_CONTEXTS];
};

struct timerlat_report {
	struct report report;
	struct rows cpus; /* of struct timerlat_cpu */
	struct field_at context, latency;
};

static int timerlat_on_sample(struct report *report, const struct trace_event *ev)
{
	struct timerlat_report *t = container_of(report, struct timerlat_report, report);
	struct timerlat_cpu *cpu = rows_get(&t->cpus, (struct row_key){ ev->cpu, 0 });
	uint64_t context = field_at_read(&t->context, &ev->rec);

	if (!cpu)
		return -ENOMEM;
	cpu->cpu = ev->cpu;
	if (context >= TIMERLAT_CONTEXTS)
		return 0;
	return histogram_add_at(&cpu->late[context], field_at_read(&t->latency, &ev->rec),
				ev->rec.ts, &cpu->max_at[context]);
}

static void timerlat_cpu_deinit(void *data)
{
	struct timerlat_cpu *cpu = data;

	for (unsigned i = 0; i < TIMERLAT_CONTEXTS; i++)
		histogram_deinit(&cpu->late[i]);
}

static int timerlat_open(struct report **ret, struct report_env *env)
{
	struct timerlat_report *t = calloc(1, sizeof(*t));
	const struct event *ev = NULL;

	if (!t)
		return -ENOMEM;
	*ret = &t->report;
	t->report.env = env;
	rows_init(&t->cpus, sizeof(struct timerlat_cpu), timerlat_cpu_deinit);
	if (recorded_lacks_tracer(env->info, "timerlat") ||
	    !report_on(env, &t->report, "ftrace", "timerlat", timerlat_on_sample, &ev))
		return -ENODATA;
	t->context = field_at_find(ev, "context", env->big_endian);
	t->latency = field_at_find(ev, "timer_latency", env->big_endian);
	return 0;
}

static const struct column timerlat_columns[] = {
	COLUMN("cpu", COLUMN_NUMBER),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("irq-min", COLUMN_TIME, .adds = ADDS_SMALLEST),
	COLUMN("irq", COLUMN_HISTOGRAM),
	COLUMN("irq-max-at", COLUMN_AT, .adds = ADDS_AT, .of = "irq"),
	COLUMN("threads", COLUMN_COUNT),
	COLUMN("thread-min", COLUMN_TIME, .adds = ADDS_SMALLEST),
	COLUMN("thread", COLUMN_HISTOGRAM),
	COLUMN("thread-max-at", COLUMN_AT, .adds = ADDS_AT, .of = "thread"),
	COLUMN("users", COLUMN_COUNT),
	COLUMN("user", COLUMN_HISTOGRAM),
};

static void timerlat_put_cpu(struct table *t, const struct timerlat_cpu *cpu)
{
	const struct histogram *user = &cpu->late[TIMERLAT_USER];

	table_put_number(t, cpu->cpu);
	for (enum timerlat_context c = TIMERLAT_IRQ; c <= TIMERLAT_THREAD; c++) {
		const struct histogram *late = &cpu->late[c];

		table_put_count(t, late->count);
		table_put_count(t, late->count ? late->min : TABLE_UNKNOWN);
		table_put_histogram(t, late);
		table_put_count(t, cpu->max_at[c]);
	}
	table_put_count(t, user->count);
	table_put_histogram(t, user);
}

static int timerlat_close(struct report *report, struct table **ret)
{
	struct timerlat_report *t = container_of(report, struct timerlat_report, report);
	struct table *table;
	int r = table_new(&table, "timerlat", timerlat_columns, ARRAY_SIZE(timerlat_columns), NULL);

	if (r < 0)
		return r;
	*ret = table;
	for (uint32_t i = 0; i < t->cpus.count; i++)
		timerlat_put_cpu(table, rows_at(&t->cpus, i));
	return 0;
}

static void timerlat_free(struct report *report)
{
	struct timerlat_report *t = container_of(report, struct timerlat_report, report);

	rows_deinit(&t->cpus);
	free(t);
}

const struct report_kind report_timerlat = {
	.about = {
		.name = "timerlat",
		.summary = "how late timer interrupts and the threads that they wake were",
		.events = "-p timerlat",
	},
	.open = timerlat_open,
	.close = timerlat_close,
	.free = timerlat_free,
};
