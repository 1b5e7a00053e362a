/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measures one part of the pipeline alone: the thread's CPU time, the median of several runs. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define RUNS 11

static inline double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The time between these two calls is measured. */
static double began, took;

static inline void start(void)
{
	began = cpu_ns();
}

static inline void stop(void)
{
	took = cpu_ns() - began;
}

/* run returns the number of items processed. */
static inline void measure(const char *what, const char *item, size_t (*run)(void *),
			   void *userdata)
{
	double ns[RUNS];

	for (int i = 0; i < RUNS; i++) {
		size_t items = run(userdata);

		ns[i] = took / (double)items;
	}
	qsort(ns, RUNS, sizeof(ns[0]), by_value);
	printf("%s: %.2f ns per %s (median of %d), %.2f at best\n", what, ns[RUNS / 2], item, RUNS,
	       ns[0]);
}
