/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"

int thread_begin(pthread_t *ret, size_t stack, void *(*run)(void *userdata), void *userdata)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int e = pthread_attr_init(&attr);

	if (e)
		return -e;
	pthread_attr_setstacksize(&attr, stack);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(ret, &attr, run, userdata);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -e;
}

unsigned thread_cpus(unsigned most)
{
	cpu_set_t set;

	/* Fails if the kernel supports more CPUs than the set holds: there are enough then. */
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return most;
	return MIN((unsigned)CPU_COUNT(&set), most);
}

void thread_leave_cpu(int cpu)
{
	cpu_set_t all, others;

	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return;
	others = all;
	CPU_CLR((size_t)cpu, &others);
	if (CPU_COUNT(&others) && sched_setaffinity(0, sizeof(others), &others) == 0)
		sched_setaffinity(0, sizeof(all), &all);
}

void *cache_lines_new(size_t size)
{
	size_t len = (size + CACHE_LINES - 1) / CACHE_LINES * CACHE_LINES;
	void *p = aligned_alloc(CACHE_LINES, len);

	return p ? memset(p, 0, len) : NULL;
}
