/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * marks WAY KIND THREADS [RATE]: the cost of a mark. Prints nanoseconds of the thread's own CPU
 * time for each mark, one number per batch, so that a busy machine disturbs it little. WAY is
 * traced or marker (text to trace_marker, a descriptor on stdin). KIND is plain (begin and end,
 * each counted as a mark), args (begin with three arguments, and end) or int (one integer). With
 * RATE, marks per second and thread, each thread on its own CPU, it paces itself for two seconds
 * and prints the number of marks made and dropped by each thread.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <traced/traced.h>
#include <unistd.h>

#include "marks_batches.h"

static void traced_plain(unsigned n)
{
	for (unsigned i = 0; i < n; i += 2) {
		TRACED_BEGIN("bench", "plain");
		TRACED_END();
	}
}

static void traced_args(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		TRACED_INSTANT("bench", "args", TRACED_SCOPE_THREAD, TRACED_INT("i", i),
			       TRACED_DOUBLE("d", i * 0.5), TRACED_STRING("s", "a short text"));
}

static void traced_int(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		TRACED_INSTANT("bench", "int", TRACED_SCOPE_THREAD, TRACED_INT("i", i));
}

static void marker_plain(unsigned n)
{
	static const char begin[] = "B|1|plain", end[] = "E|1";

	for (unsigned i = 0; i < n; i += 2)
		if (write(0, begin, sizeof(begin) - 1) < 0 || write(0, end, sizeof(end) - 1) < 0)
			abort();
}

static void marker_args(unsigned n)
{
	char text[64];

	for (unsigned i = 0; i < n; i++) {
		int len =
			snprintf(text, sizeof(text), "i=%u d=%g s=%s", i, i * 0.5, "a short text");

		if (write(0, text, (size_t)len) < 0)
			abort();
	}
}

static void marker_int(unsigned n)
{
	char text[32];

	for (unsigned i = 0; i < n; i++) {
		int len = snprintf(text, sizeof(text), "i=%u", i);

		if (write(0, text, (size_t)len) < 0)
			abort();
	}
}

static const struct way ways[] = {
	{ "traced", "plain", traced_plain },
	{ "traced", "args", traced_args },
	{ "traced", "int", traced_int },
	{ "marker", "plain", marker_plain },
	{ "marker", "args", marker_args },
	{ "marker", "int", marker_int },
	{ NULL, NULL, NULL },
};

static unsigned long rate;

#define SLICE_NS UINT64_C(1000000)
/* A thread that had to wait for its CPU catches up by this much at most, to keep the rate. */
#define LATE_NS (5 * SLICE_NS)

static void *pace(void *unused)
{
	static unsigned next_cpu;
	uint64_t start = traced_now(), due = start, made = 0;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(__atomic_fetch_add(&next_cpu, 1, __ATOMIC_RELAXED), &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	for (unsigned slice = 0; slice < 2000; slice++) {
		uint64_t now;

		while ((now = traced_now()) < due)
			;
		if (now > due + LATE_NS)
			due = now - LATE_NS;
		traced_plain((unsigned)(rate / 1000));
		made += rate / 1000;
		due += SLICE_NS;
	}
	printf("%llu %llu %.3f\n", (unsigned long long)made, (unsigned long long)traced_dropped(),
	       (double)(traced_now() - start) / 1e9);
	return unused;
}

int main(int argc, char **argv)
{
	if (argc == 5) {
		rate = strtoul(argv[4], NULL, 10);
		on_threads(atoi(argv[3]), pace);
		return 0;
	}
	return argc == 4 ? measure(ways, argv[1], argv[2], atoi(argv[3])) : 2;
}
