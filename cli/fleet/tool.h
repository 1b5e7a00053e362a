/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs that do one thing for us, between two descriptors: signify, curl. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define TOOL_FOLDER 3
#define TOOL_FOLDER_PATH "/proc/self/fd/3"

/*
 * Runs argv[0], found by PATH, with these as its standard input and output, and waits for its end.
 * in, out: -EBADF: ours. folder: it has this one as descriptor TOOL_FOLDER; -EBADF: none. file_max:
 * bytes of each file that it writes; it gets EFBIG beyond. 0: no bound. Returns its exit status,
 * 128 and the number of the signal that ended it, or -errno; -ENOENT: there is no such program.
 */
int tool_run(const char *const *argv, int in, int out, int folder, uint64_t file_max,
	     struct error *err);

/* The same, without the wait for its end. */
int tool_start(const char *const *argv, int in, int out, int folder, uint64_t file_max,
	       pid_t *ret_pid, struct error *err);
/* Waits for its end, and returns the status as tool_run() does. Sets *pid to 0. */
int tool_wait(pid_t *pid);
/* True if it has ended; then *pid is 0. */
bool tool_has_ended(pid_t *pid);
/* Ends it at once, unless *pid is 0. */
void tool_end(pid_t *pid);
