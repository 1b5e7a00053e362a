/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Batches of marks, timed by the thread's own CPU time. */
#pragma once

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCHES 200
#define BATCH 10000U
#define THREADS_MAX 256

struct way {
	const char *way, *kind;
	void (*marks)(unsigned n);
};

static const struct way *chosen_way;

static inline double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline void *batches(void *unused)
{
	const struct timespec pause = { 0, 2000000 }; /* so that readers keep up */
	double ns[BATCHES];

	/* The first ones connect and touch fresh memory. */
	for (int i = 0; i < 20; i++)
		chosen_way->marks(BATCH);
	for (int i = 0; i < BATCHES; i++) {
		double before = cpu_ns();

		chosen_way->marks(BATCH);
		ns[i] = (cpu_ns() - before) / BATCH;
		nanosleep(&pause, NULL);
	}
	for (int i = 0; i < BATCHES; i++)
		printf("%.2f\n", ns[i]);
	return unused;
}

static inline void on_threads(int count, void *(*run)(void *))
{
	pthread_t threads[THREADS_MAX];

	for (int i = 0; i < count && i < THREADS_MAX; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < count && i < THREADS_MAX; i++)
		pthread_join(threads[i], NULL);
}

static inline int measure(const struct way *ways, const char *way, const char *kind, int threads)
{
	for (chosen_way = ways; chosen_way->way; chosen_way++)
		if (strcmp(chosen_way->way, way) == 0 && strcmp(chosen_way->kind, kind) == 0)
			break;
	if (!chosen_way->way)
		return 2;
	on_threads(threads, batches);
	return 0;
}
