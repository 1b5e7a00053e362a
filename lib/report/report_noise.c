/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The report `noise`: what took a CPU's time from its main task. From osnoise's events if there are
 * any; otherwise from interrupts, softirqs and switches, as noise_stack.h counts them.
 */
#include <errno.h>
#include <stdlib.h>

#include "report/irq_events.h"
#include "report/noise.h"
#include "report/scheduler.h"

struct noise_cpu *noise_cpu(struct noise_report *n, uint32_t number)
{
	struct noise_cpu *cpu = rows_get(&n->cpus, (struct row_key){ number, 0 });

	if (cpu) {
		cpu->used = true;
		cpu->cpu = number;
	}
	return cpu;
}

struct noise_cpu *noise_cpu_pass(struct noise_report *n, const struct trace_event *ev)
{
	struct noise_cpu *cpu = noise_cpu(n, ev->cpu);

	if (cpu) {
		if (cpu->last_ts)
			cpu->runtime += report_elapsed(cpu->last_ts, ev->rec.ts);
		cpu->last_ts = ev->rec.ts;
	}
	return cpu;
}

void noise_sum_add(struct noise_sum *sum, uint64_t ns)
{
	sum->count++;
	sum->ns += ns;
	sum->max = MAX(sum->max, ns);
}

static int noise_enter(struct report *report, const struct trace_event *ev,
		       enum noise_source source)
{
	struct noise_report *n = container_of(report, struct noise_report, report);
	struct noise_cpu *cpu = noise_cpu_pass(n, ev);

	if (cpu)
		cpu->cut += noise_stack_enter(&cpu->stack, source, ev->pid, ev->rec.ts);
	return cpu ? 0 : -ENOMEM;
}

static int noise_leave(struct report *report, const struct trace_event *ev,
		       enum noise_source source)
{
	struct noise_report *n = container_of(report, struct noise_report, report);
	struct noise_cpu *cpu = noise_cpu_pass(n, ev);
	uint64_t ns;

	if (!cpu)
		return -ENOMEM;
	if (noise_stack_leave(&cpu->stack, source, ev->rec.ts, &ns))
		noise_sum_add(&cpu->sums[source], ns);
	else if (noise_stack_leave_switched(&cpu->stack, source, ev->pid))
		return 0;
	else if (cpu->stack.lost)
		cpu->cut++;
	else
		cpu->open++;
	return 0;
}

static int noise_on_irq_entry(struct report *r, const struct trace_event *ev)
{
	return noise_enter(r, ev, NOISE_IRQ);
}

static int noise_on_irq_exit(struct report *r, const struct trace_event *ev)
{
	return noise_leave(r, ev, NOISE_IRQ);
}

static int noise_on_softirq_entry(struct report *r, const struct trace_event *ev)
{
	return noise_enter(r, ev, NOISE_SOFTIRQ);
}

static int noise_on_softirq_exit(struct report *r, const struct trace_event *ev)
{
	return noise_leave(r, ev, NOISE_SOFTIRQ);
}

/* A task ran: its interrupts are not its own. */
static int noise_on_ran(struct report *report, const struct sched_span *span,
			const struct sched_task *next _unused_)
{
	struct noise_report *n = container_of(report, struct noise_report, report);
	struct noise_cpu *cpu = noise_cpu(n, span->cpu);
	struct noise_task *task =
		rows_get(&n->tasks, (struct row_key){ span->cpu, (uint32_t)span->task->tid });
	uint64_t within;

	if (!cpu || !task)
		return -ENOMEM;
	task->cpu = cpu;
	within = noise_stack_taken(&cpu->stack);
	cpu->cut += span->state == SPAN_CUT;
	cpu->open += span->state == SPAN_OPEN;
	if (span->state == SPAN_WHOLE)
		noise_sum_add(&task->ran,
			      span->to - span->from - MIN(within, span->to - span->from));
	return 0;
}

/* The scheduler has seen the switch before, and passed on the run that it ended. */
static int noise_on_switch(struct report *report, const struct trace_event *ev)
{
	struct noise_report *n = container_of(report, struct noise_report, report);
	struct noise_cpu *cpu = noise_cpu_pass(n, ev);

	if (cpu)
		noise_stack_switch(&cpu->stack);
	return cpu ? 0 : -ENOMEM;
}

static int noise_loss(struct report *report, uint32_t number)
{
	struct noise_report *n = container_of(report, struct noise_report, report);
	struct noise_cpu *cpu = noise_cpu(n, number);

	if (!cpu)
		return -ENOMEM;
	cpu->cut += noise_stack_lose(&cpu->stack);
	cpu->last_ts = 0;
	return 0;
}

static bool noise_open_interrupts(struct noise_report *n)
{
	struct irq_events irq = { 0 }, soft = { 0 };
	struct irq_vectors vectors = { 0 };

	irq_events_ask(&irq, &n->report, "irq_handler", "irq", noise_on_irq_entry,
		       noise_on_irq_exit);
	irq_events_ask(&soft, &n->report, "softirq", "vec", noise_on_softirq_entry,
		       noise_on_softirq_exit);
	n->recorded[NOISE_IRQ] =
		irq_vectors_ask(&vectors, &n->report, noise_on_irq_entry, noise_on_irq_exit) ||
		(irq.has_entry && irq.has_exit);
	n->recorded[NOISE_SOFTIRQ] = soft.has_entry && soft.has_exit;
	return n->recorded[NOISE_IRQ] || n->recorded[NOISE_SOFTIRQ];
}

static int noise_open(struct report **ret, struct report_env *env)
{
	struct noise_report *n = calloc(1, sizeof(*n));
	bool any;
	int r;

	if (!n)
		return -ENOMEM;
	*ret = &n->report;
	n->report.env = env;
	rows_init(&n->cpus, sizeof(struct noise_cpu), NULL);
	rows_init(&n->tasks, sizeof(struct noise_task), NULL);
	any = noise_open_osnoise(n);
	any |= noise_open_interrupts(n);
	r = scheduler_listen(env->scheduler, &(struct sched_listener){
						     .report = &n->report,
						     .ran = noise_on_ran,
					     });
	if (r < 0)
		return r == -ENODATA && any ? 0 : r;
	n->recorded[NOISE_THREAD] = true;
	report_on(env, &n->report, "sched", "sched_switch", noise_on_switch, NULL);
	return 0;
}

/* All tasks of a CPU but the one that ran most are noise. */
static void noise_sum_tasks(struct noise_report *n)
{
	for (uint32_t i = 0; i < n->tasks.count; i++) {
		const struct noise_task *task = rows_at(&n->tasks, i);
		struct noise_cpu *cpu = task->cpu;
		const struct noise_sum *other = &task->ran;

		if (!cpu)
			continue;
		if (!cpu->main || task->ran.ns > cpu->main->ns) {
			other = cpu->main;
			cpu->main = &task->ran;
		}
		if (!other)
			continue;
		cpu->sums[NOISE_THREAD].count += other->count;
		cpu->sums[NOISE_THREAD].ns += other->ns;
		cpu->sums[NOISE_THREAD].max = MAX(cpu->sums[NOISE_THREAD].max, other->max);
	}
}

static const struct column noise_columns[] = {
	COLUMN("cpu", COLUMN_NUMBER),
	COLUMN("runtime", COLUMN_TIME),
	COLUMN("noise", COLUMN_TIME),
	COLUMN("available", COLUMN_PERMILLE, .adds = ADDS_REMAINDER, .of = "noise",
	       .over = "runtime"),
	COLUMN("max", COLUMN_TIME, .adds = ADDS_LARGEST),
	COLUMN("nmis", COLUMN_COUNT),
	COLUMN("nmi", COLUMN_TIME),
	COLUMN("irqs", COLUMN_COUNT),
	COLUMN("irq", COLUMN_TIME),
	COLUMN("softirqs", COLUMN_COUNT),
	COLUMN("softirq", COLUMN_TIME),
	COLUMN("threads", COLUMN_COUNT),
	COLUMN("thread", COLUMN_TIME),
	COLUMN("cut", COLUMN_COUNT),
	COLUMN("open", COLUMN_COUNT),
};

static void noise_put_cpu(const struct noise_report *n, struct table *t,
			  const struct noise_cpu *cpu)
{
	const bool osnoise = n->saw_osnoise;
	const struct noise_sum *sums = osnoise ? cpu->osnoise : cpu->sums;
	const bool *recorded = osnoise ? n->osnoise_recorded : n->recorded;
	uint64_t runtime = cpu->runtime, noise = 0, max = 0;

	for (enum noise_source s = 0; s < NOISE_SOURCES; s++) {
		noise += sums[s].ns;
		max = MAX(max, sums[s].max);
	}
	if (osnoise && cpu->sampled.count) {
		runtime = cpu->sampled_runtime;
		noise = cpu->sampled.ns;
		max = cpu->sampled.max;
	}
	table_put_number(t, cpu->cpu);
	table_put_count(t, runtime);
	table_put_count(t, noise);
	table_put_count(t, TABLE_DERIVED);
	table_put_count(t, max);
	for (enum noise_source s = 0; s < NOISE_SOURCES; s++) {
		table_put_count(t, recorded[s] ? sums[s].count : TABLE_UNKNOWN);
		table_put_count(t, recorded[s] ? sums[s].ns : TABLE_UNKNOWN);
	}
	table_put_count(t, osnoise ? 0 : cpu->cut);
	table_put_count(t, osnoise ? 0 : cpu->open);
}

static int noise_close(struct report *report, struct table **ret)
{
	struct noise_report *n = container_of(report, struct noise_report, report);
	struct table *t;
	int r = table_new(&t, "noise", noise_columns, ARRAY_SIZE(noise_columns), "noise");

	if (r < 0)
		return r;
	*ret = t;
	noise_sum_tasks(n);
	for (uint32_t i = 0; i < n->cpus.count; i++) {
		struct noise_cpu *cpu = rows_at(&n->cpus, i);

		cpu->open += cpu->stack.depth;
		noise_put_cpu(n, t, cpu);
	}
	table_note(t, n->saw_osnoise
			      ? "from the events of osnoise"
			      : "a CPU's main task is the one that ran most; idle is no noise");
	return 0;
}

static void noise_free(struct report *report)
{
	struct noise_report *n = container_of(report, struct noise_report, report);

	rows_deinit(&n->cpus);
	rows_deinit(&n->tasks);
	free(n);
}

const struct report_kind report_noise = {
	.about = {
		.name = "noise",
		.summary = "what took CPUs' time from their main tasks",
		.takes_any = true,
		.events = "sched -e irq -e irq_vectors",
	},
	.open = noise_open,
	.loss = noise_loss,
	.close = noise_close,
	.free = noise_free,
};
