/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of readers, and the entry to them by a file's first bytes. */
#pragma once

#include "export/reader.h"

/* Whether a reader takes the file, or what these first bytes begin. */
bool import_wanted(int fd);
bool import_begins(const void *data, size_t len);

/*
 * in: a regular file. stream_fd: an empty one; together with in (export_options.pages_fd) it can be
 * read as a capture stream. -EBADMSG: in can't be understood, or ends before its events begin;
 * -ENOENT: it has no such buffer; -EINVAL: its buffers do not go into one trace; -EDQUOT: the
 * stream would be longer than limit. Where in ends among the events, the stream has the whole
 * sub-buffers before that and is marked incomplete.
 */
int import_stream(int in, int stream_fd, const struct import_options *o, struct error *err);
