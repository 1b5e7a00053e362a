/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a trace refers to by numbers of its own choice: tracks, interned data, flows. The
 * numbers are hostile: what would make a search long is not taken. Several tables share a bound.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KNOWN_BYTES_MAX ((size_t)64 << 20)

struct known_room {
	size_t used; /* bytes, of all tables */
};

struct known_table {
	struct known *slots; /* owned; open addressing */
	uint32_t count, cap;
};
void known_deinit(struct known_table *t, struct known_room *room);

/* NULL: it is not there. Valid until it is dropped. */
void *known_find(const struct known_table *t, uint64_t key);
/* Zeroed; in the place of what had that key. NULL: there is no room for it, or no memory. */
void *known_add(struct known_table *t, struct known_room *room, uint64_t key, size_t size);
void known_drop(struct known_table *t, struct known_room *room, uint64_t key);
