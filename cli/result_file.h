/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that appears under its name whole or not at all. It is written
 * without a name in the same directory (O_TMPFILE; else as ".NAME.XXXXXX", which
 * also a fatal signal removes) and gets its name by rename(2) once it is synced.
 * What is no regular file (a device, a pipe) is written in place, and so is a descriptor that this
 * program was handed: standard output, /dev/fd/N.
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
	char *base; /* the final name in dir_fd; NULL: written in place */
	char *temp; /* the present name in dir_fd; NULL: none */
	bool fresh; /* the final name must not replace anything: -EEXIST, and it may get another */
};
#define RESULT_FILE_INIT ((struct result_file){ .fd = -EBADF, .dir_fd = -EBADF })

/* For the tests: as on a filesystem without O_TMPFILE. */
extern bool result_file_force_named;

/* path "-": standard output. Nothing under path is touched before result_file_commit. */
int result_file_open(struct result_file *ret, const char *path, struct error *err);
/* The same, seen as "NAME.part" meanwhile (part.h). -EEXIST: that name is taken. */
int result_file_open_part(struct result_file *ret, const char *path, struct error *err);
/* Of a part: tries how its name will be given; it has a hidden one after that. */
int result_file_rehearse(struct result_file *f, struct error *err);
/* It is to have another name, in the same directory. */
int result_file_rename(struct result_file *f, const char *path, struct error *err);
/*
 * Syncs it and gives it its name. Where that fails (the directory is gone, the name has become
 * one; it can't be synced, and may not be whole), it is saved under another name, which the hint
 * tells.
 */
int result_file_commit(struct result_file *f, struct error *err);
/* A part stays what it is called now: false: it is none, and will be removed. */
bool result_file_leave(struct result_file *f);
/* Removes what was not committed. */
void result_file_deinit(struct result_file *f);
#define _cleanup_result_file_ _cleanup_(result_file_deinit)

/*
 * In a folder that many may write to, a file or link of somebody else may lie under the name: by
 * mistake, or to have root write where they can't. r: 0 or what stat() failed with; st: of what
 * the path leads to. 0 or -EPERM.
 */
int result_file_refuse_others(const char *path, int r, const struct stat *st, struct error *err);
/* -EISDIR, and what to do. */
int result_file_refuse_directory(const char *path, struct error *err);
/* Until SIG_SETMASK with old: between a name's making and whoever removes it. */
void result_file_block_fatal(sigset_t *old);
