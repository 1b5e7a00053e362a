/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers of tasks and CPUs in a file of several machines whose readers know no machines. Each
 * machine has ranges of its own, so that no number of one is a number of another, whatever a
 * damaged recording says.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The last seven digits are the machine's own pid. Linux gives at most 4194304. */
#define HOST_PIDS 10000000U
/* Trace processor ends on a CPU from this one on. */
#define HOST_CPUS_MAX 4096U

struct host_numbers {
	const char *label; /* borrowed */
	uint32_t number;   /* of the machine in the file, from 0 */
	uint32_t cpus;	   /* all CPUs of its recording are below */
	uint32_t first_cpu;
};

/*
 * Sets first_cpu of all machines: to a multiple of a power of ten, if there is room, so that the
 * last digits are the machine's own number. -EOVERFLOW: more than HOST_CPUS_MAX CPUs.
 */
int host_numbers_place(struct host_numbers *all, size_t count);

/* n NULL: the numbers stay. A negative number is no pid, and stays. */
static inline int32_t host_pid(const struct host_numbers *n, int32_t pid)
{
	return n && pid >= 0 ? (int32_t)((n->number + 1) * HOST_PIDS + (uint32_t)pid % HOST_PIDS)
			     : pid;
}

/* The same, but all machines share the idle task, 0: readers look for that number. */
static inline int32_t host_task(const struct host_numbers *n, int32_t pid)
{
	return pid ? host_pid(n, pid) : 0;
}

/* A number that is no CPU, such as -1, stays. */
static inline uint32_t host_cpu(const struct host_numbers *n, uint32_t cpu)
{
	return n && cpu < n->cpus ? n->first_cpu + cpu : cpu;
}
