/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internals of the report `noise`. */
#pragma once

#include "report/kind.h"
#include "report/noise_stack.h"

/* Interruptions of one kind on a CPU. */
struct noise_sum {
	uint64_t count, ns, max;
};

struct noise_cpu {
	bool used;
	uint32_t cpu;
	uint64_t runtime, last_ts; /* last_ts 0: events are missing since */
	struct noise_stack stack;
	struct noise_sum sums[NOISE_SOURCES];
	const struct noise_sum *main; /* the task that ran most; NULL: none, or not known yet */
	/* From samples of the osnoise tracer. */
	struct noise_sum sampled; /* ns: noise; max: max_sample */
	uint64_t sampled_runtime;
	struct noise_sum osnoise[NOISE_SOURCES];
	uint64_t cut, open;
};

/* A task on a CPU. */
struct noise_task {
	struct noise_cpu *cpu;
	struct noise_sum ran;
};

struct noise_report {
	struct report report;
	struct rows cpus;  /* of struct noise_cpu */
	struct rows tasks; /* of struct noise_task, by CPU and tid */
	struct field_at duration[NOISE_SOURCES];
	struct field_at noise, runtime, max_sample;
	bool saw_osnoise;
	/* Whether the recording has events of each source. */
	bool recorded[NOISE_SOURCES], osnoise_recorded[NOISE_SOURCES];
};

/* The CPU at one of its events. NULL: out of memory. */
struct noise_cpu *noise_cpu(struct noise_report *n, uint32_t number);
/* The same; time without losses passes on the CPU. */
struct noise_cpu *noise_cpu_pass(struct noise_report *n, const struct trace_event *ev);
void noise_sum_add(struct noise_sum *sum, uint64_t ns);

/* Asks for the events of the osnoise tracer. False: the recording has none. */
bool noise_open_osnoise(struct noise_report *n);
