/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings left by a crash or a failed export: nobody writes or fetches them. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "cli.h"

struct leftover {
	char *path;
	uint64_t bytes;
	time_t ended;
};

struct leftovers {
	struct leftover *items;
	size_t count;
};

/*
 * Root: looks in traced.conf's folder. Others may not read it: asks a daemon that listens for those
 * of this user. 0 or -errno.
 */
int leftovers_find(struct leftovers *ret, const struct options *o);
/* Appends what the user can do with it. output: the name that the file gets. */
void leftover_put_remedy(const struct leftover *l, const char *output, struct buf *out);
void leftovers_deinit(struct leftovers *l);
