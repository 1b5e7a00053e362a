/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parts (NAME.part) that killed recordings left. The writers of a part hold a lock on it, so an
 * unlocked one has no writer: the next recording of that name mends and renames it.
 */
#pragma once

#include "base/buf.h"
#include "export/sink.h"
#include "output/sequel.h"

/*
 * Mends a left-over part so that readers can open it. Returns its locked descriptor. -ENOENT: none,
 * or nothing usable; -EBUSY: still being written. path: for the names of sequels, which are added
 * to ret (sequel.h); NULL: it has none.
 */
int part_take(int dir_fd, const char *part, const struct export_format *format, const char *path,
	      struct sequels *ret);
/*
 * Renames a left-over part of path to "out.partial.json", "out.partial.2.json" ... 1: the name is
 * in ret_name; 0: nothing left.
 */
int part_recover(const char *path, const struct export_format *format, struct buf *ret_name);
