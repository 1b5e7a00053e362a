/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that appears under its name complete or not at all. It is written without a name in the
 * target directory (O_TMPFILE; else as ".NAME.XXXXXX", which a fatal signal removes, too) and
 * renamed once it is synced. Devices, pipes and inherited descriptors (standard output, /dev/fd/N)
 * are written in place.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

struct result_file {
	int fd; /* for writing and, unless in place, reading */
	char *path;
	int dir_fd;
	char *base; /* final name in dir_fd; NULL: written in place */
	char *temp; /* current name in dir_fd; NULL: none */
	bool fresh; /* the final name must not exist: -EEXIST; it may be changed */
};
#define RESULT_FILE_INIT ((struct result_file){ .fd = -EBADF, .dir_fd = -EBADF })

/* For tests: simulates a filesystem without O_TMPFILE. */
extern bool result_file_force_named;

/* path "-": standard output. Nothing at path changes before result_file_commit(). */
int result_file_open(struct result_file *ret, const char *path, struct error *err);
/* The same, visible as "NAME.part" meanwhile (part.h). -EEXIST: that name is taken. */
int result_file_open_part(struct result_file *ret, const char *path, struct error *err);
/* For a part: tests the final rename by giving it a hidden name. */
int result_file_rehearse(struct result_file *f, struct error *err);
/* Changes the final name, within the same directory. */
int result_file_rename(struct result_file *f, const char *path, struct error *err);
/*
 * Syncs and renames the file. If that fails (the directory is gone, a directory took the name,
 * syncing failed), saves it under another name, given in the hint.
 */
int result_file_commit(struct result_file *f, struct error *err);
/* Keeps a part under its current name. False: not a part; it will be removed. */
bool result_file_leave(struct result_file *f);
/* Removes an uncommitted file. */
void result_file_deinit(struct result_file *f);
#define _cleanup_result_file_ _cleanup_(result_file_deinit)

/*
 * Refuses another user's file or link in a folder where many may write: it could redirect root's
 * writes. r: result of stat(); st: of the path's target. 0 or -EPERM.
 */
int result_file_refuse_others(const char *path, int r, const struct stat *st, struct error *err);
/* Returns -EISDIR with a hint. */
int result_file_refuse_directory(const char *path, struct error *err);
/* Blocks fatal signals until SIG_SETMASK with old: while a name exists that nobody would remove. */
void result_file_block_fatal(sigset_t *old);
