/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Known stacks: leaf() runs three times as long for middle_b() as for middle_a(), for a number of
 * milliseconds of CPU time, or ("5000r") a number of rounds; "-t N": in N more threads, too.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEEP __attribute__((noinline))

static _Thread_local volatile unsigned sink;
static long wanted_ms, wanted_rounds;

/* Asking for the frame gives it one, though it calls nothing. */
KEEP static void leaf(unsigned rounds)
{
	sink += (unsigned)(uintptr_t)__builtin_frame_address(0);
	for (unsigned i = 0; i < rounds; i++)
		sink = sink * 1664525 + i;
}

KEEP static void middle_a(unsigned rounds)
{
	leaf(rounds);
	sink++;
}

KEEP static void middle_b(unsigned rounds)
{
	leaf(3 * rounds);
	sink++;
}

/*
 * Of varying length: a sampler whose period is a multiple of one round would always see the same.
 */
static void turn(unsigned *seed)
{
	unsigned rounds = 10000 + (*seed >> 16) % 20001;

	*seed = *seed * 1664525 + 1013904223;
	middle_a(rounds);
	middle_b(rounds);
}

KEEP static void *work(void *unused)
{
	struct timespec now;
	unsigned seed = 1;

	for (long i = 0; i < wanted_rounds; i++)
		turn(&seed);
	if (wanted_rounds)
		return unused;
	do {
		turn(&seed);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < wanted_ms);
	return unused;
}

int main(int argc, char **argv)
{
	int threads = argc > 3 && !strcmp(argv[2], "-t") ? atoi(argv[3]) : 0;
	pthread_t all[64];

	if (argc > 1 && strchr(argv[1], 'r'))
		wanted_rounds = atol(argv[1]);
	wanted_ms = argc > 1 ? atol(argv[1]) : 100;
	for (int i = 0; i < threads && i < 64; i++)
		pthread_create(&all[i], NULL, work, NULL);
	work(NULL);
	for (int i = 0; i < threads && i < 64; i++)
		pthread_join(all[i], NULL);
	return 0;
}
