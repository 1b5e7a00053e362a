/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files of one source. They are opened once and read again and again, except for those of
 * processes. Content is passed on unparsed.
 */
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "stream/poll_source.h"

/* Processes of one reading of POLL_PROCESS_MEMORY, and of a pass over all of them. */
#define POLL_SLICE 64
#define POLL_PROCESSES_MAX 8192

struct poll_where {
	const char *proc, *sys; /* "/proc", "/sys", or fixtures' directories; borrowed */
	const pid_t *pids;	/* of POLL_PROCESS_MEMORY; NULL: all processes; copied */
	size_t pid_count;
};

struct polled_file;

struct poll_files {
	enum poll_source source;
	struct polled_file *files; /* owned */
	size_t count;
	char *proc;    /* owned; of POLL_PROCESS_MEMORY, as are the following */
	pid_t *pids;   /* owned; NULL: all */
	DIR *dir;      /* of the pass under way; NULL: none */
	size_t at;     /* number of the next of pids, or of processes seen in the pass */
	bool too_many; /* a pass ended at POLL_PROCESSES_MAX */
};

/* -ENOENT and the like if none of its files can be read; the message names one. */
int poll_files_open(struct poll_files *ret, enum poll_source source, const struct poll_where *where,
		    struct error *err);
void poll_files_close(struct poll_files *f);
/*
 * Reads the files, or the next slice of processes, and appends a field of traced.capture.Polls to
 * `out`; text: scratch. Files that can't be read at present are left out. Returns 1 if the pass has
 * further slices; 0; or -ENOMEM.
 */
int poll_files_read(struct poll_files *f, struct buf *text, struct buf *out);
