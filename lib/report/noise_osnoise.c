/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Noise as the osnoise tracer and its events measured it. */
#include <errno.h>

#include "base/io.h"
#include "report/noise.h"

static int noise_osnoise(struct report *report, const struct trace_event *ev,
			 enum noise_source source)
{
	struct noise_report *n = container_of(report, struct noise_report, report);
	struct noise_cpu *cpu = noise_cpu_pass(n, ev);

	if (!cpu)
		return -ENOMEM;
	n->saw_osnoise = true;
	noise_sum_add(&cpu->osnoise[source], field_at_read(&n->duration[source], &ev->rec));
	return 0;
}

static int noise_on_osnoise_irq(struct report *r, const struct trace_event *ev)
{
	return noise_osnoise(r, ev, NOISE_IRQ);
}

static int noise_on_osnoise_softirq(struct report *r, const struct trace_event *ev)
{
	return noise_osnoise(r, ev, NOISE_SOFTIRQ);
}

static int noise_on_osnoise_thread(struct report *r, const struct trace_event *ev)
{
	return noise_osnoise(r, ev, NOISE_THREAD);
}

static int noise_on_osnoise_nmi(struct report *r, const struct trace_event *ev)
{
	return noise_osnoise(r, ev, NOISE_NMI);
}

/* One period of the osnoise tracer; its times are in us. */
static int noise_on_sample(struct report *report, const struct trace_event *ev)
{
	struct noise_report *n = container_of(report, struct noise_report, report);
	struct noise_cpu *cpu = noise_cpu_pass(n, ev);
	uint64_t max;

	if (!cpu)
		return -ENOMEM;
	n->saw_osnoise = true;
	cpu->sampled.count++;
	cpu->sampled.ns += field_at_read(&n->noise, &ev->rec) * NSEC_PER_USEC;
	cpu->sampled_runtime += field_at_read(&n->runtime, &ev->rec) * NSEC_PER_USEC;
	max = field_at_read(&n->max_sample, &ev->rec) * NSEC_PER_USEC;
	cpu->sampled.max = MAX(cpu->sampled.max, max);
	return 0;
}

bool noise_open_osnoise(struct noise_report *n)
{
	static const struct {
		const char *name;
		enum noise_source source;
		report_handler handler;
	} events[] = {
		{ "irq_noise", NOISE_IRQ, noise_on_osnoise_irq },
		{ "softirq_noise", NOISE_SOFTIRQ, noise_on_osnoise_softirq },
		{ "thread_noise", NOISE_THREAD, noise_on_osnoise_thread },
		{ "nmi_noise", NOISE_NMI, noise_on_osnoise_nmi },
	};
	struct report_env *env = n->report.env;
	const struct event *ev;
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		if (!report_on(env, &n->report, "osnoise", events[i].name, events[i].handler, &ev))
			continue;
		any = n->osnoise_recorded[events[i].source] = true;
		n->duration[events[i].source] = field_at_find(ev, "duration", env->big_endian);
	}
	if (report_on(env, &n->report, "ftrace", "osnoise", noise_on_sample, &ev)) {
		any = true;
		n->noise = field_at_find(ev, "noise", env->big_endian);
		n->runtime = field_at_find(ev, "runtime", env->big_endian);
		n->max_sample = field_at_find(ev, "max_sample", env->big_endian);
	}
	return any;
}
