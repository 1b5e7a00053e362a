/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The minimum work of a recorder and an exporter, in several ways. "ways empty WAY WAIT FILE
 * RING..." moves the content of trace_pipe_raw files into FILE until SIGTERM; "ways write WAY FILE
 * MEGABYTES" makes a file and syncs it. Prints its CPU time in ns; for a file the elapsed time,
 * too.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define BATCH 370001	      /* the size of an exporter's batch, not a multiple of anything */
#define BOUNDARY (128U << 10) /* the boundary at which aligned writes end */
#define DIRECT (1U << 20)
#define LEAVING (8U << 20)
#define STEP (9U << 20)	  /* allocated then, because a write may end behind the next 8 MiB */
#define ROOM (256U << 10) /* moved at a time */
#define RINGS_MAX 1024

static volatile sig_atomic_t over;

static void end(int signal)
{
	over = signal;
}

_Noreturn static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0)
			die("write");
		data += n;
		len -= (size_t)n;
	}
}

static char room[ROOM];

/* Returns the number of bytes read from one ring. */
static size_t empty_one(const char *way, int ring, const int *pipe, int file)
{
	ssize_t n, done = 0, part = 1;

	if (!strcmp(way, "read")) {
		n = read(ring, room, sizeof(room));
		if (n > 0)
			write_all(file, room, (size_t)n);
		return n > 0 ? (size_t)n : 0;
	}
	n = splice(ring, NULL, pipe[1], NULL, ROOM, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (n <= 0)
		return 0;
	for (; done < n && part > 0; done += part)
		part = strcmp(way, "copy") ? splice(pipe[0], NULL, file, NULL, (size_t)(n - done),
						    SPLICE_F_MOVE)
					   : read(pipe[0], room + done, (size_t)(n - done));
	if (part <= 0)
		die(way);
	if (!strcmp(way, "copy"))
		write_all(file, room, (size_t)n);
	return (size_t)n;
}

static void empty(const char *way, const char *wait, int file, char **paths, int count)
{
	struct pollfd rings[RINGS_MAX];
	int pipes[2], usecs = atoi(wait);

	if (count > RINGS_MAX || pipe2(pipes, O_NONBLOCK) < 0)
		die("pipe");
	fcntl(pipes[1], F_SETPIPE_SZ, ROOM);
	for (int i = 0; i < count; i++) {
		rings[i] = (struct pollfd){ .fd = open(paths[i], O_RDONLY | O_NONBLOCK),
					    .events = POLLIN };
		if (rings[i].fd < 0)
			die(paths[i]);
	}
	while (!over) {
		size_t had = 0;

		for (int i = 0; i < count; i++)
			had += empty_one(way, rings[i].fd, pipes, file);
		if (had || over)
			continue;
		if (!strcmp(wait, "poll"))
			poll(rings, (nfds_t)count, 500);
		else
			usleep((useconds_t)usecs);
	}
	printf("%llu\n", (unsigned long long)now(CLOCK_PROCESS_CPUTIME_ID));
}

/* Bytes that do not reach a boundary wait in rest. */
static size_t write_aligned(int fd, size_t at, const char *data, char *rest, size_t *rest_len)
{
	size_t stop = (at + *rest_len + BATCH) / BOUNDARY * BOUNDARY, used = stop - at - *rest_len;
	struct iovec parts[] = { { rest, *rest_len }, { (char *)(uintptr_t)data, used } };

	if (writev(fd, parts, 2) != (ssize_t)(stop - at))
		die("writev");
	*rest_len = BATCH - used;
	memcpy(rest, data + used, *rest_len);
	return stop - at;
}

static void make_file(const char *way, const char *path, size_t bytes)
{
	bool direct = !strcmp(way, "direct"), aligned = strstr(way, "aligned"),
	     steps = strstr(way, "steps"), leaving = strcmp(way, "plain") && !direct;
	uint64_t wall, cpu;
	size_t at = 0, left = 0, rest_len = 0;
	char *data = aligned_alloc(4096, DIRECT), *rest = malloc(BOUNDARY);
	int fd;

	if (!data || !rest)
		die("memory");
	memset(data, 'x', DIRECT);
	unlink(path);
	fd = open(path, O_CREAT | O_WRONLY | (direct ? O_DIRECT : 0), 0600);
	if (fd < 0)
		die(path);
	wall = now(CLOCK_MONOTONIC);
	cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	if (!strcmp(way, "allocated") && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) < 0)
		die("fallocate");
	while (at < bytes) {
		size_t n = direct ? DIRECT : BATCH;

		if (aligned)
			n = write_aligned(fd, at, data, rest, &rest_len);
		else
			write_all(fd, data, n);
		at += n;
		if (leaving && at - left >= LEAVING) {
			sync_file_range(fd, (off_t)left, (off_t)(at - left), SYNC_FILE_RANGE_WRITE);
			left = at;
			if (steps && fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)at, STEP) < 0)
				die("fallocate");
		}
	}
	write_all(fd, rest, rest_len);
	if (steps && ftruncate(fd, (off_t)(at + rest_len)) < 0)
		die("ftruncate");
	if (fsync(fd) < 0)
		die("fsync");
	printf("%llu %llu\n", (unsigned long long)(now(CLOCK_PROCESS_CPUTIME_ID) - cpu),
	       (unsigned long long)(now(CLOCK_MONOTONIC) - wall));
	unlink(path);
}

int main(int argc, char **argv)
{
	struct sigaction on_term = { .sa_handler = end };

	if (argc == 5 && !strcmp(argv[1], "write")) {
		make_file(argv[2], argv[3], (size_t)atoi(argv[4]) << 20);
		return 0;
	}
	if (argc < 6 || strcmp(argv[1], "empty")) {
		fprintf(stderr,
			"usage: ways empty WAY WAIT FILE RING... | write WAY FILE MEGABYTES\n");
		return 2;
	}
	sigaction(SIGTERM, &on_term, NULL);
	empty(argv[2], argv[3], open(argv[4], O_CREAT | O_TRUNC | O_WRONLY, 0600), argv + 5,
	      argc - 5);
	return 0;
}
