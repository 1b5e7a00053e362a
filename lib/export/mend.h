/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Repairs a file that a crash or a full disk cut off, so that readers can open it: an incomplete
 * packet or line is removed, open brackets are closed.
 *
 * A format's mend() gets a descriptor for reading and writing, and the file's size. It returns 1; 0
 * if nothing usable is left; -EBADMSG for a file of another kind; or another -errno.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "export/sink.h"

/* Bytes examined at one time. */
#define MEND_PIECE (256U << 10)

/*
 * Calls the format's mend(). Without one, and for compressed files, the file stays unchanged:
 * readers use the valid part and report the cut.
 */
int mend_file(const struct export_format *format, int fd, struct error *err);

/* Helpers for mend() of the formats. */

/* Truncates the file there. 1, or 0 where nothing is left. */
int mend_cut(int fd, off_t end);
/* Writes `close` at `at` and ends the file after it. */
int mend_close(int fd, off_t at, const char *close);
/* The end of the last complete line before size; 0: none. */
off_t mend_last_line(int fd, off_t size);
/* Whether r means that the file can't grow. */
bool mend_is_full(int r);
