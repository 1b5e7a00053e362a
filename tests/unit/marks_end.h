/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's end of applications' marks, for tests: in a folder of its own, a recording in
 * memory, and rings that are made by hand. What fails fails the test.
 */
#pragma once

#include <stdbool.h>

#include "daemon/marks/internal.h"

extern char marks_folder[64];
/* For cmocka. TRACED_MARKS names the folder. */
int marks_folder_make(void **state);
int marks_folder_remove(void **state);

struct marks *marks_serve(const struct marks_limits *limits);
/* Once a second a program looks for a daemon that was not there. */
void marks_find_daemon(void);

/* A connection; -1: refused. */
int marks_connect(void);
/* What sendmsg() returns. ring: a descriptor that goes with it, or -1. */
ssize_t marks_send(int fd, const struct marks_message *msg, int ring);
/* Of this process. */
struct marks_message marks_ring_message(uint32_t size);
/* < 0: there is none. */
int marks_memfd(uint64_t size, int seals);

struct marks_recording {
	struct marks_sink sink;
	struct buf text; /* what was marked and named, cut where it is long */
	unsigned producers, chunks;
	uint64_t dropped, lost, marks, bytes;
	uint32_t epochs[1024]; /* the last one of each ring */
	int32_t pid, tid;
	char comm[64];
	int fail; /* what write returns */
};
void marks_recording_begin(struct marks *m, struct marks_recording *r);
void marks_recording_end(struct marks *m, struct marks_recording *r);
