/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program that marks for two seconds on two threads; some of its slices are open all the time. */
#include <pthread.h>
#include <time.h>
#include <traced/traced.h>

#define ROUNDS 40

static void run(int thread)
{
	const struct timespec pause = { .tv_nsec = 25000000 };

	TRACED_BEGIN("rotate", "whole");
	TRACED_ASYNC_BEGIN("rotate", "operation", TRACED_ID(thread));
	for (int n = 0; n < ROUNDS; n++) {
		TRACED_BEGIN("rotate", "round", TRACED_INT("number", n));
		nanosleep(&pause, NULL);
		TRACED_COUNTER_OF("rotate", "progress", TRACED_ID(thread), TRACED_INT("rounds", n));
		TRACED_END();
		nanosleep(&pause, NULL);
	}
	TRACED_ASYNC_END("rotate", "operation", TRACED_ID(thread));
	TRACED_END();
}

static void *worker(void *unused)
{
	(void)unused;
	TRACED_THREAD_NAME("rotating worker");
	run(2);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	TRACED_PROCESS_NAME("rotating");
	TRACED_THREAD_NAME("rotating main");
	if (pthread_create(&thread, NULL, worker, NULL) != 0)
		return 1;
	run(1);
	pthread_join(thread, NULL);
	return 0;
}
