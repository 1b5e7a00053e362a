/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Splits file names, and renames without replacing. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "export/sink.h"

/*
 * Splits "DIR/out.pftrace" into "DIR/out" and ".pftrace"; for other names, at the last dot. Owned.
 * 0 or -ENOMEM.
 */
int name_take_apart(const char *path, const struct export_format *format, char **ret_stem,
		    char **ret_ending);

/* The temporary name ".NAME.XXXXXXXX" of base, with NAME cut if too long. Owned. 0 or -errno. */
int name_hidden(const char *base, char **ret);

/* Whether the file belongs to the caller, or under sudo to its caller. */
bool name_is_callers(uid_t owner);

/*
 * Path of the file, existing or not, that `path` denotes; follows a link of the caller even to a
 * missing target. Owned. NULL: out of memory.
 */
char *name_target(const char *path);

/*
 * The descriptor that path names (/dev/stdout, /dev/fd/N, or a link to one). -EBADF: it is not an
 * inherited, writable one; -ENOENT: path names none.
 */
int name_descriptor(const char *path);

/* Some filesystems lack RENAME_NOREPLACE (vfat in older kernels, some FUSE) or hard links. */
enum { NAMES_LACK_NOREPLACE = 1, NAMES_LACK_LINKS = 2 };
/* For tests: simulates such filesystems. */
extern unsigned names_lack;

/*
 * Renames within a directory; -EEXIST if `to` exists. On filesystems without such a call, `to`
 * briefly exists as an empty file.
 */
int name_rename_fresh(int dir_fd, const char *from, const char *to);
