/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * measure FILE COMMAND...: runs COMMAND and writes its wall time, its CPU time (both ns) and its
 * peak memory (KiB) to FILE. The peak that wait4(2) reports includes that of the program that
 * forked: this one is small.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t timeval_ns(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000000000 + (uint64_t)tv->tv_usec * 1000;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	uint64_t start;
	int status;
	pid_t child;
	FILE *out;

	if (argc < 3) {
		fprintf(stderr, "Usage: %s FILE COMMAND...\n", argv[0]);
		return 2;
	}
	start = now_ns();
	child = fork();
	if (child == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &usage) < 0)
		return 126;
	out = fopen(argv[1], "w");
	if (!out)
		return 126;
	fprintf(out, "%" PRIu64 " %" PRIu64 " %ld\n", now_ns() - start,
		timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime), usage.ru_maxrss);
	if (fclose(out))
		return 126;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
