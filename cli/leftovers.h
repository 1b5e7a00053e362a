/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings that nobody writes any more and nobody fetched: what a crash or a failed export left.
 */
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

/* In the folder where traced.conf has them; none where this user may not look. 0 or -errno. */
int leftovers_find(struct leftovers *ret);
void leftovers_deinit(struct leftovers *l);
