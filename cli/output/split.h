/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files of --rotate: out.0001.pftrace, out.0002.pftrace ... A separate process (framed.h)
 * renames each when it is complete; until then it is out.0001.pftrace.part (name.h). The process
 * outlives all writers and keeps the valid part of the last file; if it is killed, the next one
 * recovers that. Numbers continue after the highest existing one, and two recordings of one name
 * share them: nothing is overwritten.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "export/sink.h"
#include "output/framed.h"

struct split {
	struct framed process;
	char *stem, *ending; /* file names are STEM.0001ENDING */
	struct buf notes;    /* lines for the user, from split_start() */
	unsigned before;     /* the highest number that was there; 0: none */
};
#define SPLIT_INIT ((struct split){ .process = FRAMED_INIT })

/* keep 0: all. -ENOENT, -EACCES...: no file can be created there. */
int split_start(struct split *ret, const char *path, const struct export_format *format,
		unsigned keep, struct error *err);
/* Also waits for the process. */
void split_deinit(struct split *s);

/* After framed_finish(): whether the process wrote that file and it still exists. */
bool split_has(const struct split *s, unsigned number);
/* The first and last such file; false: none. Others' files may be in between. */
bool split_range(const struct split *s, unsigned *ret_first, unsigned *ret_last);
/* Number of files removed, including earlier recordings'; ret_own: its own. */
unsigned split_removed(const struct split *s, unsigned *ret_own);
/* Appends that file's name. */
void split_name(const struct split *s, unsigned number, struct buf *out);
