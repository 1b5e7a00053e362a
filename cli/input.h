/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens files that commands read. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

enum input_kind {
	INPUT_RECORDING, /* a capture stream or a trace.dat */
	INPUT_MARKS,	 /* Trace Event Format */
	INPUT_PROFILE,	 /* gperftools */
	INPUT_REPORT,	 /* of report --json, or rows */
};

/* Folder for temporary files. */
const char *input_temp_place(void);
/* An unnamed file there, or -errno. */
int input_create_temp(void);
/* Whether it may grow by len bytes; some room is left to others. */
bool input_temp_has_room(int fd, uint64_t len);
/* -EISDIR, -EINVAL: an endless or unsuitable file. path: for messages. */
int input_check(const struct stat *st, const char *path, struct error *err);
/*
 * Files are read twice. A pipe is copied to an unnamed file, which replaces *fd, if it begins like
 * that kind; else -EBADMSG. -ENOSPC: no room; some is left to others.
 */
int input_keep(int *fd, const char *path, enum input_kind kind, struct error *err);

/*
 * Opens a recording; "-": standard input. Returns a descriptor of a file that can be read twice, or
 * -errno.
 */
int input_open(const char *path, struct error *err);

/*
 * Drops rights before the input, of unknown origin, is read: afterwards we can't write outside of
 * the output and temporary folders, execute programs or connect by TCP. We can still read what the
 * caller can: naming functions needs the recorded programs. Without kernel support this does
 * nothing: it is one protection of several. Root's decoding process drops the rest (confined.h).
 * folder: of the output; borrowed; negative: none.
 */
void input_confine(int folder);

/* Adds to the error of an unreadable input: its name, and a hint if there is none. */
int input_explain_damage(const char *path, struct error *err);

/*
 * Decompresses a gzip or zstd file into out, from out's offset on. It stops soon behind the largest
 * size of that kind. path: for messages. -EBADMSG: damaged or cut.
 */
int input_unpack_into(int fd, int out, const char *path, enum input_kind kind, struct error *err);

#define INPUT_TEMPS 2 /* decompressed, then converted */

/* Files needed in addition to an imported capture stream. */
struct input_beside {
	int pages_fd; /* owned; the imported file, which may hold its sub-buffers; 0: none */
	/* Owned; temporary files for a process that can't create any; 0: none, or -errno. */
	int temps[INPUT_TEMPS];
};
/* Creates the temporary files. If that fails, input_import() says so once it needs one. */
void input_reserve_temps(struct input_beside *b);
void input_beside_deinit(struct input_beside *b);
#define _cleanup_input_beside_ _cleanup_(input_beside_deinit)
/*
 * Imports a recording: decompresses a gzip or zstd file, and converts another kind, so that *fd is
 * a capture stream. A plain capture stream stays unchanged. path: for messages. instance: the
 * buffer to read, or NULL. Errors of import_stream(), or -ENOSPC. ret may be set on failure, too.
 */
int input_import(int *fd, struct input_beside *ret, const char *path, const char *instance,
		 struct error *err);
