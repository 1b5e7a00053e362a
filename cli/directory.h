/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A directory that appears under its name complete or not at all. A separate process (framed.h)
 * writes the files into ".NAME.XXXXXXXX" beside it, and renames that once all files are synced;
 * otherwise it removes it. An existing directory of that name must be empty.
 */
#pragma once

#include "framed.h"

struct directory {
	struct framed process;
};
#define DIRECTORY_INIT ((struct directory){ .process = FRAMED_INIT })

/*
 * -EEXIST: the name is taken by something other than an empty directory; -EPERM: by another user's;
 * -ENOENT, -EACCES...: the directory can't be created or examined.
 */
int directory_start(struct directory *ret, const char *path, struct error *err);
/* Waits for the process; removes an incomplete directory. */
void directory_deinit(struct directory *d);
