/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A bounded load for the benchmarks, all on the last CPU that it may use. "getppid N" makes N
 * system calls from one thread; "pingpong N" passes a byte N times to another process and back: two
 * switches and two wake-ups each time; "paced N S" does that N times a second for S seconds. "calls
 * N S" makes system calls from one thread so that N events of raw_syscalls come each second. Writes
 * CLOCK_MONOTONIC at its start and its end, in ns, to FILE.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The scheduler's placement of two tasks that talk makes more difference than tracing does. */
static void stay_on_last_cpu(void)
{
	cpu_set_t set;
	int last = -1;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set))
			last = cpu;
	}
	CPU_ZERO(&set);
	CPU_SET(last, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int spin_getppid(uint64_t count)
{
	while (count--)
		syscall(SYS_getppid);
	return 0;
}

/*
 * Each call is two events, and in each thousandth of a second the last call sleeps. Returns the
 * number of calls.
 */
static uint64_t pace_calls(uint64_t rate, double seconds)
{
	const uint64_t start = now_ns(), each = rate / 2000;
	uint64_t tick;

	for (tick = 1; (double)tick <= seconds * 1000; tick++) {
		uint64_t due = start + tick * 1000000;
		struct timespec ts = { (time_t)(due / 1000000000), (long)(due % 1000000000) };

		spin_getppid(each - 1);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
	return (tick - 1) * each;
}

static int echo(int in, int out)
{
	char byte;

	while (read(in, &byte, 1) == 1) {
		if (write(out, &byte, 1) != 1)
			return -errno;
	}
	return 0;
}

/* Waits for the time of the next call; those of one thousandth of a second come at once. */
static void keep_pace(uint64_t start, uint64_t done, uint64_t rate)
{
	uint64_t due = start + done * 1000000000 / rate;
	struct timespec ts = { (time_t)(due / 1000000000), (long)(due % 1000000000) };

	if (rate <= 1000 || done % (rate / 1000) == 0)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* rate: 0 for as fast as possible. */
static int pingpong(uint64_t count, uint64_t rate)
{
	int there[2], back[2], status;
	uint64_t start = now_ns();
	char byte = 0;
	pid_t child;

	if (pipe(there) < 0 || pipe(back) < 0)
		return -errno;
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		close(there[1]);
		close(back[0]);
		_exit(echo(there[0], back[1]) < 0);
	}
	for (uint64_t i = 0; i < count; i++) {
		if (rate)
			keep_pace(start, i, rate);
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			return -EPIPE;
	}
	close(there[1]);
	if (waitpid(child, &status, 0) < 0)
		return -errno;
	return status ? -EIO : 0;
}

int main(int argc, char **argv)
{
	bool calls = argc == 5 && strcmp(argv[1], "calls") == 0;
	bool paced = calls || (argc == 5 && strcmp(argv[1], "paced") == 0);
	uint64_t start, count, made = 0;
	FILE *times;
	int r = 0;

	times = argc == 4 || paced ? fopen(argv[argc - 1], "w") : NULL;
	if (!times) {
		fprintf(stderr, "Usage: %s getppid|pingpong COUNT FILE\n", argv[0]);
		fprintf(stderr, "       %s paced|calls RATE SECONDS FILE\n", argv[0]);
		return 2;
	}
	count = strtoull(argv[2], NULL, 10);
	stay_on_last_cpu();
	start = now_ns();
	if (strcmp(argv[1], "getppid") == 0)
		r = spin_getppid(count);
	else if (strcmp(argv[1], "pingpong") == 0)
		r = pingpong(count, 0);
	else if (calls && count >= 2000)
		made = pace_calls(count, strtod(argv[3], NULL));
	else if (paced && !calls)
		r = pingpong((uint64_t)((double)count * strtod(argv[3], NULL)), count);
	else
		return 2;
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
		return 1;
	}
	fprintf(times, "%" PRIu64 " %" PRIu64, start, now_ns());
	if (calls)
		fprintf(times, " %" PRIu64, made);
	fputc('\n', times);
	return fclose(times) ? 1 : 0;
}
