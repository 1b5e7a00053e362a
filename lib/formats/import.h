/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is no capture stream, turned into one: whatever reads one reads them then. Of trace-cmd's
 * trace.dat sub-buffers stay where they are, or are expanded into the stream; nothing is
 * decoded. Of a Perfetto trace, one that traced wrote, records are made anew
 * (docs/perfetto.md). Needs no privilege; the input is hostile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct import_options {
	const char *instance; /* of this buffer alone, "" the top-level one; NULL: of all */
	uint64_t limit;	      /* bytes that the stream may have, and the marks as many; 0: any */
	/*
	 * An empty file, for the marks of applications and the samples that a Perfetto trace has:
	 * as a file of the Trace Event Format, in the trace clock. 0: they are not wanted.
	 */
	int marks_fd;
	uint64_t *ret_marks; /* how many it has then; NULL: who asks for none */
};

/* Whether the file, or what is at its start, begins as one of these does. */
bool import_wanted(int fd);
bool import_begins(const void *data, size_t len);

/*
 * in: a regular file. stream_fd: an empty one, which can be read along with in alone:
 * export_options.pages_fd. -EBADMSG: it can't be understood, or ends before its
 * events do; -ENOENT: it has no such buffer; -EINVAL: its buffers do not go into one trace. Of
 * events that the file ends within the whole sub-buffers are there, and the stream says that
 * some are missing. -EDQUOT: it would have more than limit.
 */
int import_stream(int in, int stream_fd, const struct import_options *o, struct error *err);
