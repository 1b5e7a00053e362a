/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs that do one thing for us, between two descriptors: signify, curl. */
#pragma once

#include <stdint.h>

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
