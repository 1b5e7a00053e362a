/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that commands read. */
#pragma once

#include <sys/stat.h>

#include "base/error.h"

enum input_kind {
	INPUT_RECORDING, /* a capture stream or a trace.dat */
	INPUT_MARKS,	 /* of the Trace Event Format */
	INPUT_PROFILE,	 /* of gperftools */
};

/* Where temporary files go. */
const char *input_temp_place(void);
/* -EISDIR, -EINVAL: what is read there has no end, or nobody means it. path: for people. */
int input_check(const struct stat *st, const char *path, struct error *err);
/*
 * Files are read twice, and *fd becomes one that can be: a regular file stays what it is, of a pipe
 * a nameless one is made, should it begin as that kind does; -EBADMSG: it does not. -ENOSPC: there
 * is no room for it, some being left to others.
 */
int input_keep(int *fd, const char *path, enum input_kind kind, struct error *err);

/* Of an input that can't be read: its name, and what to do where nobody has said it. */
int input_explain_damage(const char *path, struct error *err);

/* What belongs to a capture stream that was made of another file. */
struct input_beside {
	int pages_fd; /* owned; what it was made of, which may have its sub-buffers; 0: none */
};
void input_beside_deinit(struct input_beside *b);
#define _cleanup_input_beside_ _cleanup_(input_beside_deinit)
/*
 * Another kind of recording is turned into a capture stream, which *fd is after it; a capture
 * stream stays what it is. path: for people. instance: NULL, or the buffer that is wanted of it.
 * Fails as import_stream() does, or with -ENOSPC: there is no room. ret may have something then,
 * too.
 */
int input_import(int *fd, struct input_beside *ret, const char *path, const char *instance,
		 struct error *err);
