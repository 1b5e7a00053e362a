/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of readers, and the import by a file's first bytes. */
#pragma once

#include "export/reader.h"

/* Whether some reader accepts the file, or these first bytes. */
bool import_wanted(int fd);
bool import_begins(const void *data, size_t len);

/*
 * Writes the capture stream of another recording. in: a regular file. stream_fd: empty; to read the
 * stream, pass `in` as export_options.pages_fd. -EBADMSG: `in` is invalid, or ends before its
 * events; -ENOENT: no such buffer; -EINVAL: its buffers don't fit one trace; -EDQUOT: above the
 * limit. If `in` is truncated among the events, the stream has the whole sub-buffers before that
 * and is marked incomplete.
 */
int import_stream(int in, int stream_fd, const struct import_options *o, struct error *err);
