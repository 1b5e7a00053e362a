/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NAME.part: what is being written of NAME, as far as it has come: for looking at it meanwhile,
 * and the place where it stays if all who write it are killed. It is locked as long as
 * somebody writes it; so what nobody has locked is what a recording left.
 */
#pragma once

#include "base/buf.h"
#include "export/sink.h"

#define PART ".part"

/* A new one: its descriptor, for reading and writing. -EEXIST: another one has it, or left it. */
int part_open(int dir_fd, const char *base, char **ret_name);
/*
 * What was left of base is cut to where its readers open it. Its descriptor, with the lock;
 * -ENOENT: there is none, or none that is worth it; -EBUSY: it is still written.
 */
int part_take(int dir_fd, const char *base, const struct export_format *format);
/*
 * What was left of path is named "out.partial.json", "out.partial.2.json" ...: 1, and that name;
 * 0: nothing was.
 */
int part_recover(const char *path, const struct export_format *format, struct buf *ret_name);
