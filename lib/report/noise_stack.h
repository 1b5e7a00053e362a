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
	uint64_t from, within; /* within: time of levels that interrupted it */
};

/* All zero: nothing runs. */
struct noise_stack {
	bool lost; /* events were lost before */
	unsigned depth;
	uint64_t taken; /* from tasks, since noise_stack_take() */
	struct noise_level levels[NOISE_DEPTH_MAX];
};

/* Returns how many levels this dropped: their exits are missing. */
unsigned noise_stack_enter(struct noise_stack *s, enum noise_source source, uint64_t ts);
/* False: its entry was not seen. */
bool noise_stack_leave(struct noise_stack *s, enum noise_source source, uint64_t ts,
		       uint64_t *ret_ns);
/*
 * At a switch: the time that interrupts took since the last one. Softirqs that a switch interrupts
 * (PREEMPT_RT) are forgotten: they count as their thread's time.
 */
uint64_t noise_stack_take(struct noise_stack *s);
/* After a loss. Returns the number of levels that it cut. */
unsigned noise_stack_lose(struct noise_stack *s);
