/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of files: taken apart, and given where nothing must be replaced. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "export/sink.h"

/* "DIR/out.pftrace" is "DIR/out" and ".pftrace"; of other names what follows their last dot. Owned.
 * 0 or -ENOMEM. */
int name_take_apart(const char *path, const struct export_format *format, char **ret_stem,
		    char **ret_ending);

/* ".NAME.XXXXXXXX", NAME cut where the whole would be too long; what base is to be called until it
 * is whole. Owned. 0 or -errno. */
int name_hidden(const char *base, char **ret);

/* Whose the file is: who asks, or, with sudo, who asked for that. */
bool name_is_callers(uid_t owner);

/*
 * Where a file of that name is, or will be once it is made: the target of a link of the caller's
 * need not be there. Owned. NULL: out of memory.
 */
char *name_target(const char *path);

/*
 * The descriptor that path is a name of (/dev/stdout, /dev/fd/N, or a link to one). -EBADF: it is
 * one that was not handed to this program to write to; -ENOENT: it is none.
 */
int name_descriptor(const char *path);

/* Without RENAME_NOREPLACE (before Linux 5.x on vfat, some of FUSE); without hard links. */
enum { NAMES_LACK_NOREPLACE = 1, NAMES_LACK_LINKS = 2 };
/* For the tests: as on such filesystems. */
extern unsigned names_lack;

/*
 * In one directory: from is called to, which must not be there: -EEXIST. On a
 * filesystem that has no call for that, to is seen empty for a moment.
 */
int name_rename_fresh(int dir_fd, const char *from, const char *to);
