/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command that is recorded: forked at once, so that its pid is known, but
 * held before its exec until the recording is armed. It dies with us as long
 * as it is held.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct child {
	pid_t pid;   /* 0: none */
	int go_fd;   /* a byte lets it go */
	int exec_fd; /* tells why exec failed; closed by a good one */
	bool ended;
	int status; /* as of waitpid */
};
#define CHILD_INIT ((struct child){ .go_fd = -EBADF, .exec_fd = -EBADF })

/*
 * -ENOENT, -EACCES before anything is forked if there is no such program.
 * to_stderr: its standard output is our standard error (ours carries the trace).
 */
int child_spawn(struct child *c, char *const *argv, bool to_stderr, struct error *err);
/* Lets it exec and waits until it did. */
int child_release(struct child *c, const char *name, struct error *err);
/* True once it has ended; to be called after SIGCHLD. */
bool child_reap(struct child *c);
/* One that is still held goes away; one that runs is left alone. */
void child_deinit(struct child *c);
#define _cleanup_child_ _cleanup_(child_deinit)
