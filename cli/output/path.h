/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Paths of outputs: kinds, links, owners. Nothing here changes a file. */
#pragma once

#include <sys/types.h>

#include "export/sink.h"

/*
 * The kinds of outputs. In place: standard output, an inherited descriptor, a device or a pipe. A
 * file need not exist.
 */
enum path_kind { PATH_FILE, PATH_DIRECTORY, PATH_IN_PLACE };
enum path_kind path_kind(const char *path);

/*
 * Splits "DIR/BASE". Without a slash, DIR is "."; after a last slash, BASE is empty. Owned. 0 or
 * -ENOMEM.
 */
int path_split(const char *path, char **ret_dir, char **ret_base);
/*
 * Splits "DIR/out.pftrace" into "DIR/out" and ".pftrace"; for other names, at the last dot. Owned.
 * 0 or -ENOMEM.
 */
int path_split_ending(const char *path, const struct export_format *format, char **ret_stem,
		      char **ret_ending);

/* Follows links at the path's end, also to a name without a file. Without one it copies. Owned. */
char *path_follow_links(const char *path);

/* Whether the file belongs to the caller, or under sudo to its caller. */
bool path_owner_is_caller(uid_t owner);

/* The advice of most errors about an output's path. */
#define OTHER_OUTPUT "name another output with -o"
/* Refuses to replace a file or a directory with content: -EEXIST. */
int path_check_directory(const char *path, struct error *err);
/* Returns -EISDIR with a hint. */
int path_refuse_directory(const char *path, struct error *err);

/*
 * The descriptor that path names (/dev/stdout, /dev/fd/N, or a link to one). -EBADF: it is not an
 * inherited, writable one; -ENOENT: path names none.
 */
int path_descriptor(const char *path);
/* From now on path_descriptor() takes this descriptor, too, although it was not inherited. */
void path_descriptor_allow(int fd);
