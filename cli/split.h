/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files of --rotate. A process of its own (framed.h) gives each file its name when it is whole:
 * out.0001.pftrace, out.0002.pftrace; until then it is out.0001.pftrace.part (part.h). So it
 * outlives whoever writes, and keeps of the last file what there is; if it is killed itself, the
 * next one finds that. Numbers go on behind the highest that is there, and two recordings of one
 * name share them: nothing is overwritten.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "export/sink.h"
#include "framed.h"

struct split {
	struct framed process;
	char *stem, *ending; /* STEM.0001ENDING */
	struct buf notes;    /* lines for the person who asked, from split_start */
};
#define SPLIT_INIT ((struct split){ .process = FRAMED_INIT })

/* keep 0: all. -ENOENT, -EACCES...: no file can be made there. */
int split_start(struct split *ret, const char *path, const struct export_format *format,
		unsigned keep, struct error *err);
/* Waits, too. */
void split_deinit(struct split *s);

/* After framed_finish: whether that file was made by it, and is there. */
bool split_has(const struct split *s, unsigned number);
/* The first and the last such; false: there is none. Others' may be between them. */
bool split_range(const struct split *s, unsigned *ret_first, unsigned *ret_last);
/* How many were removed, those of earlier recordings included; and how many that it had made. */
unsigned split_removed(const struct split *s, unsigned *ret_own);
/* Appends that file's name. */
void split_name(const struct split *s, unsigned number, struct buf *out);
