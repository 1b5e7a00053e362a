/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings left by a crash or a failed export: nobody writes or fetches them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct leftover {
	char *path;
	uint64_t bytes;
};

struct leftovers {
	struct leftover *items;
	size_t count;
};

/* Looks in traced.conf's folder; finds none if this user may not read it. 0 or -errno. */
int leftovers_find(struct leftovers *ret);
void leftovers_deinit(struct leftovers *l);
