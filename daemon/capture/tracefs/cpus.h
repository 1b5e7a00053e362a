/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads each CPU's model, capacity and frequencies. */
#pragma once

#include "proto/capture.pb-c.h"

struct cpu_list {
	Traced__Capture__Cpu *cpus;  /* owned */
	Traced__Capture__Cpu **list; /* owned; the array that protobuf-c needs */
	size_t count;
};

/*
 * Reads CPUs 0 to count - 1. sys, proc: /sys and /proc, or a fixture's; skips missing values. 0 or
 * -ENOMEM.
 */
int cpu_list_read(struct cpu_list *ret, int sys, int proc, unsigned count);
void cpu_list_deinit(struct cpu_list *l);
