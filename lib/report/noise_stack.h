/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Interrupts and softirqs that run on a CPU, each interrupted by the next. The time of one is
 * without those within it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum noise_source { NOISE_NMI, NOISE_IRQ, NOISE_SOFTIRQ, NOISE_THREAD, NOISE_SOURCES };

#define NOISE_DEPTH_MAX 8

struct noise_level {
	enum noise_source source;
	int32_t tid;	       /* of the thread that it interrupts, or that runs it */
	uint64_t from, within; /* within: time of levels that interrupted it */
};

/* All zero: nothing runs. */
struct noise_stack {
	bool lost; /* events were lost before */
	unsigned depth;
	/* Threads that were switched out in a softirq, and have not ended it: the last ones. */
	unsigned switched_count;
	int32_t switched[NOISE_DEPTH_MAX];
	uint64_t taken; /* by levels that have ended, since the last switch */
	struct noise_level levels[NOISE_DEPTH_MAX];
};

/* Returns how many levels this dropped: their exits are missing. */
unsigned noise_stack_enter(struct noise_stack *s, enum noise_source source, int32_t tid,
			   uint64_t ts);
/* False: its entry was not seen. */
bool noise_stack_leave(struct noise_stack *s, enum noise_source source, uint64_t ts,
		       uint64_t *ret_ns);
/* An exit that noise_stack_leave() refused. True: of a softirq that a switch interrupted. */
bool noise_stack_leave_switched(struct noise_stack *s, enum noise_source source, int32_t tid);
/* The time that interrupts took from the task that has run since the last switch. */
uint64_t noise_stack_taken(const struct noise_stack *s);
/*
 * A switch ends that task's run. Softirqs that it interrupts (PREEMPT_RT) are forgotten: they count
 * as their thread's time, without interrupts in them.
 */
void noise_stack_switch(struct noise_stack *s);
/* After a loss. Returns the number of levels that it cut. */
unsigned noise_stack_lose(struct noise_stack *s);
