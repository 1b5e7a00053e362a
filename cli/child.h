/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorded command: forked early, so that its pid is known, and held before its exec until the
 * recording is armed. While held it dies with us.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct child {
	pid_t pid;	  /* 0: no child */
	const char *name; /* the command's; borrowed */
	int go_fd;	  /* a socket; a byte in it starts the command */
	int end_fd;	  /* pidfd; -EBADF: the kernel has none */
	int exec_fd;	  /* reports why exec failed; closed by a successful exec */
	bool released;
	bool ended;
	int status; /* status of waitpid() */
};
#define CHILD_INIT ((struct child){ .go_fd = -EBADF, .end_fd = -EBADF, .exec_fd = -EBADF })

/* True if a child gets an end_fd, by which another process may wait for its end. */
bool child_can_be_watched(void);
/* Before an exec of another program: undoes what tracectl did to signals. */
void child_reset_signals(void);
/*
 * -ENOENT, -EACCES before the fork if there is no such program. to_stderr: connect its standard
 * output to our standard error (ours carries the trace).
 */
int child_hold(struct child *c, char *const *argv, bool to_stderr, struct error *err);
/* Lets the child exec, without waiting for that: it would be in the recording. */
int child_release(struct child *c, struct error *err);
/* After child_reap(): 0, or why the exec failed. */
int child_check_exec(struct child *c, struct error *err);
/* True if it has ended. */
bool child_reap(struct child *c);
/* Ends a child that is still held; leaves a running one alone. */
void child_deinit(struct child *c);
#define _cleanup_child_ _cleanup_(child_deinit)
