/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A separate process that reads the exporter's frames (export/segment.h) from a socket and writes
 * files, with the caller's rights only. It ignores signals and ends with the socket, so it outlives
 * every writer and cleans up.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* In shared memory; the parent reads it after the process has ended. */
struct framed_report {
	volatile bool give_up;	  /* set by the parent: remove incomplete files */
	volatile bool left;	  /* set by the parent: it waits no longer: take no more */
	atomic_uint busy_since_s; /* framed_watch.h */
	bool whole;		  /* the last frame was received and written */
	int code;
	char message[1024], hint[1024];
};

struct framed {
	int fd; /* for the exporter; close it here once passed on */
	pid_t pid;
	int killed_by; /* a signal; 0: exited by itself, or still running */
	pid_t left;    /* it hangs, and nobody waits for it; 0: none */
	struct framed_report *report;
	size_t report_size;
};
#define FRAMED_INIT ((struct framed){ .fd = -EBADF })

struct frame {
	uint32_t kind;	  /* enum segment_frame_kind */
	const char *data; /* for a truncated frame: the part received */
	size_t len;
};

/* Both functions are called in the separate process. */
struct framed_ops {
	size_t report_size; /* the report begins with a struct framed_report */
	/* Handles one frame; an error ends the process. */
	int (*take)(void *maker, const struct frame *frame, struct error *err);
	/* No more frames, or an error occurred. */
	void (*end)(void *maker);
};

/*
 * path: of the output, for messages. kept: the descriptor that the process inherits, under its
 * number; negative: none. The process has a copy of maker and ret as they are then.
 */
int framed_start(struct framed *ret, const struct framed_ops *ops, void *maker, const char *path,
		 int kept, struct error *err);
/* Sets the error for a frame that is not allowed. Returns -EPROTO. */
int framed_refuse(struct error *err);
/*
 * Closes the socket and waits. After framed_give_up() it leaves a process that hangs. Returns the
 * process's error; -ECHILD: it was killed; -EPIPE: the frames were cut off.
 */
int framed_finish(struct framed *f, struct error *err);
void framed_give_up(struct framed *f);
/* Also waits for the process. */
void framed_deinit(struct framed *f);
