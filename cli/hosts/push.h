/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl -H HOST --push`: the far side gets its program with the connection.
 *
 *     far: PUSH_SCRIPT makes a file, removes its name and folder, says "@push MACHINE"
 *     near: the program's size in a line, then the program
 *     far: says "@got BYTES" once a second, then "@got all", and becomes the program
 *
 * So the file is gone whatever happens later, also if both sides are killed.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/io.h"

/* A host that makes no progress for so long has failed. */
#define PUSH_SILENCE_S 15
/* The far shell's descriptor of the file. */
#define PUSH_FD 3
/* Words before the command line: PUSH_WORDS tracectl status */
#define PUSH_WORDS "sh", "-c", push_script, "sh"
extern const char push_script[];

struct push {
	bool wanted;	    /* and not yet there: each line may be about it */
	const char *from;   /* value of --push; NULL: the usual folder */
	int fd;		    /* the program, while it is sent; else -EBADF */
	uint64_t size;	    /* of the program; 0: not yet asked for */
	uint64_t sent, got; /* got: what the far side has reported */
	uint64_t limit_ns;  /* CLOCK_MONOTONIC: the host has failed, if it is wanted by then */
};
#define PUSH_INIT(options)                                                                         \
	((struct push){ .wanted = (options)->push, .from = (options)->push_from, .fd = -EBADF })
/* Renews the limit; call at progress. */
void push_renew(struct push *p);

/*
 * A line of the far side's messages. If it asks for the program: finds that and sends its size to
 * `to`, a pipe. Returns 0 if it is a line for people, 1 if not, or -errno.
 */
int push_take_line(struct push *p, const char *line, int to, struct error *err);
/* Sends a piece of it, if the pipe has room, as long as p->fd is open. 0 or -errno. */
int push_go_on(struct push *p, int to, struct error *err);
void push_deinit(struct push *p);
/* Why the host's program did not start, by the exit status; or NULL. pushed: with --push. */
const char *push_explain(const char *spec, int status, bool pushed);
