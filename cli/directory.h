/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A directory that appears under its name whole or not at all. A process of its own (framed.h)
 * writes the files into ".NAME.XXXXXXXX" beside it, and gives it its name once all are there and
 * synced; else it removes them. What has that name already must be an empty directory.
 */
#pragma once

#include "framed.h"

struct directory {
	struct framed process;
};
#define DIRECTORY_INIT ((struct directory){ .process = FRAMED_INIT })

/*
 * -EEXIST: something has the name, and is no empty directory; -EPERM: it is another user's;
 * -ENOENT, -EACCES...: none can be made there, or what is there can't be looked into.
 */
int directory_start(struct directory *ret, const char *path, struct error *err);
/* Waits; what is not whole is removed. */
void directory_deinit(struct directory *d);
