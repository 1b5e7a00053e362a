/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The names that event formats leave open: enumerators, mostly, that the kernel's BTF resolves. */
#pragma once

#include <stddef.h>

#include "util/cleanup.h"

struct ident_set {
	char **names; /* open addressing, NULL where free; owned */
	size_t count, cap;
};

void ident_set_deinit(struct ident_set *set);
#define _cleanup_ident_set_ _cleanup_(ident_set_deinit)

/*
 * Adds the identifiers in text's "print fmt:" that could be constants, "HZ"
 * among them where jiffies are converted. Some more than are needed may come
 * in: fields' names, C's own words are left out only where that is cheap.
 */
int ident_set_add_format(struct ident_set *set, const char *text, size_t len);
/* The names as a sorted array, that borrows from the set; to be freed. NULL: no memory or empty. */
const char **ident_set_sorted(const struct ident_set *set);
