/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mending of what a crash or a full disk left of a file, so that its readers open it: what is not
 * whole (a packet, a line) is cut off, and what has to be closed is closed.
 *
 * A format's mend() gets a descriptor for reading and writing, and the file's size. It returns 1,
 * 0 where nothing is left, -EBADMSG for a file of another kind, or another -errno.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "export/sink.h"

/* Bytes that are looked at together. */
#define MEND_PIECE (256U << 10)

/*
 * As the format's mend(). Of a format without one, and of a compressed file, all is kept: its
 * reader takes what there is, and says that it was cut.
 */
int mend_file(const struct export_format *format, int fd, struct error *err);

/* For mend() of formats. */

/* The file ends at that place. 1, or 0 where nothing is left. */
int mend_cut(int fd, off_t end);
/* The file ends with close, at that place. */
int mend_close(int fd, off_t at, const char *close);
/* The end of the last whole line before size; 0: there is none. */
off_t mend_last_line(int fd, off_t size);
/* Whether r says that the file can't grow. */
bool mend_is_full(int r);
