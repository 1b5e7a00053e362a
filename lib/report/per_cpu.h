/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Intervals on one CPU: an interrupt's handler begins and ends there. Only a loss on that CPU can
 * cut one.
 */
#pragma once

#include "report/kind.h"

/* The latest begin of one key on one CPU. */
struct cpu_interval {
	uint64_t since;	 /* 0: it has not begun */
	uint64_t losses; /* of the CPU, when it began */
	void *row;	 /* the caller's */
	bool used;
};

struct per_cpu {
	struct rows intervals;
	uint64_t *losses; /* owned; of each CPU so far */
	uint32_t count;
};

enum interval_end {
	INTERVAL_WHOLE,
	INTERVAL_CUT,	   /* its begin, or what came between, is lost */
	INTERVAL_NO_BEGIN, /* the recording began in it */
};

void per_cpu_init(struct per_cpu *p);
void per_cpu_deinit(struct per_cpu *p);
/* Losses of that CPU so far. */
uint64_t per_cpu_losses(const struct per_cpu *p, uint32_t cpu);
/* Events of that CPU were lost. Returns 0 or -ENOMEM. */
int per_cpu_loss(struct per_cpu *p, uint32_t cpu);
/* The interval of a key on a CPU. NULL: out of memory. */
struct cpu_interval *per_cpu_get(struct per_cpu *p, uint32_t cpu, uint64_t key);
/* True if the interval that it replaces was cut by a loss. */
bool per_cpu_begin(struct per_cpu *p, struct cpu_interval *i, uint32_t cpu, uint64_t ts);
/* Ends it; *ret_ns is valid if it is whole. */
enum interval_end per_cpu_end(struct per_cpu *p, struct cpu_interval *i, uint32_t cpu, uint64_t ts,
			      uint64_t *ret_ns);
