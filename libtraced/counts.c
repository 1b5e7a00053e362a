/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread's CPU time and instructions. */
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emit.h"

/*
 * The counter's descriptor + 1; 0: none. In a forked child it still counts the parent, so
 * counter_tid holds the thread that it was opened for.
 */
static __thread int counter initial_exec;
static __thread int counter_tid initial_exec;

static bool counter_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int tid = (int)syscall(SYS_gettid);

	if (counter && counter_tid == tid)
		return true;
	counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) + 1;
	counter_tid = tid;
	return counter > 0;
}

unsigned traced_thread_counts(unsigned which)
{
	struct thread *t = &traced_thread;
	struct timespec ts;

	if ((which & TRACED_WITH_THREAD_CLOCK) && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) < 0)
		which &= ~TRACED_WITH_THREAD_CLOCK;
	if ((which & TRACED_WITH_INSTRUCTIONS) && !counter_open())
		which &= ~TRACED_WITH_INSTRUCTIONS;
	if (!(which & TRACED_WITH_INSTRUCTIONS) && counter) {
		close(counter - 1);
		counter = 0;
	}
	t->counts = which & (TRACED_WITH_THREAD_CLOCK | TRACED_WITH_INSTRUCTIONS);
	return t->counts;
}

uint32_t thread_count_fields(const struct thread *t, char *to)
{
	char *p = to;
	uint64_t n;

	if (t->counts & TRACED_WITH_THREAD_CLOCK)
		p = mark_put_number(p, MARK_THREAD_TIME, MARK_UINT,
				    clock_ns(CLOCK_THREAD_CPUTIME_ID));
	if ((t->counts & TRACED_WITH_INSTRUCTIONS) && counter &&
	    read(counter - 1, &n, sizeof(n)) == (ssize_t)sizeof(n))
		p = mark_put_number(p, MARK_INSTRUCTIONS, MARK_UINT, n);
	return (uint32_t)(p - to);
}
