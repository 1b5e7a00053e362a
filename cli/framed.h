/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A process of its own that takes the exporter's frames (export/segment.h) from a socket and
 * makes files of them, with the caller's rights and nobody else's. It ignores signals and ends with
 * the socket: so it outlives whoever writes, and tidies up.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* In pages that both processes see; the parent reads it once the other has ended. */
struct framed_report {
	volatile bool give_up; /* the parent's: what is not whole is not wanted */
	bool whole;	       /* the last frame came, and was taken */
	int code;
	char message[1024], hint[1024];
};

struct framed {
	int fd; /* for the exporter; to be closed here once that has it */
	pid_t pid;
	int killed_by; /* a signal; 0: it ended by itself, or has not */
	struct framed_report *report;
	size_t report_size;
};
#define FRAMED_INIT ((struct framed){ .fd = -EBADF })

struct frame {
	uint32_t kind;	  /* enum segment_frame_kind */
	const char *data; /* of what was cut as much as came */
	size_t len;
};

/* Both are called in the other process. */
struct framed_ops {
	/* One frame; an error is the last that is heard of it. */
	int (*take)(void *maker, const struct frame *frame, struct error *err);
	/* Nothing more comes, or some frame could not be taken. */
	void (*end)(void *maker);
};

/* The report, of report_size bytes, begins with a struct framed_report. 0 or -errno. */
int framed_init(struct framed *ret, size_t report_size);
/* Of our descriptors that process has but kept, as FRAMED_KEPT; negative: none. */
#define FRAMED_KEPT 3
int framed_start(struct framed *f, const struct framed_ops *ops, void *maker, int kept,
		 struct error *err);
/*
 * Closes the socket and waits. An error is that of what could not be made; -ECHILD: the process was
 * killed; -EPIPE: it was cut.
 */
int framed_finish(struct framed *f, struct error *err);
void framed_give_up(struct framed *f);
/* Waits, too. */
void framed_deinit(struct framed *f);
