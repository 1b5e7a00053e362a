/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's end of applications' marks, for tests: in its own folder, with a recording in memory
 * and hand-made rings. Every failure fails the test.
 */
#pragma once

#include <stdbool.h>

#include "daemon/marks/internal.h"

extern char marks_folder[64];
/* Setup and teardown for cmocka. TRACED_MARKS names the folder. */
int marks_folder_make(void **state);
int marks_folder_remove(void **state);

struct marks *marks_serve(const struct marks_limits *limits);
/* A program looks once a second for a daemon that was absent. */
void marks_find_daemon(void);

/* Connects; -1: refused. */
int marks_connect(void);
/* Returns what sendmsg() returns. ring: a descriptor to pass, or -1. */
ssize_t marks_send(int fd, const struct marks_message *msg, int ring);
/* A message that offers a ring of this process. */
struct marks_message marks_ring_message(uint32_t size);
#define RING_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
/* Negative: it cannot be made. */
int marks_memfd(uint64_t size, int seals);

struct marks_recording {
	struct marks_sink sink;
	struct buf text; /* marks and names, truncated if long */
	unsigned producers, chunks;
	uint64_t dropped, lost, marks, bytes;
	uint32_t epochs[1024]; /* the last one of each ring */
	int32_t pid, tid;
	char comm[64];
	int fail; /* return value of write */
};
void marks_recording_begin(struct marks *m, struct marks_recording *r);
void marks_recording_end(struct marks *m, struct marks_recording *r);
