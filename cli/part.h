/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NAME.part: a file while it is written. It can be read meanwhile, and remains if all writers are
 * killed. The writers hold a lock on it, so an unlocked one was left by a killed recording.
 */
#pragma once

#include "base/buf.h"
#include "export/sink.h"

#define PART ".part"

/* Creates it and returns a descriptor for reading and writing. -EEXIST: in use, or left over. */
int part_open(int dir_fd, const char *base, char **ret_name);
/*
 * Mends a left-over part of base so that readers can open it. Returns its locked descriptor.
 * -ENOENT: none, or nothing usable; -EBUSY: still being written.
 */
int part_take(int dir_fd, const char *base, const struct export_format *format);
/*
 * Renames a left-over part of path to "out.partial.json", "out.partial.2.json" ... 1: the name is
 * in ret_name; 0: nothing left.
 */
int part_recover(const char *path, const struct export_format *format, struct buf *ret_name);
