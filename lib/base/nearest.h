/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the names nearest to a mistyped one. */
#pragma once

#include <stddef.h>

#define NEAREST_MAX 3

/*
 * Fills best with up to NEAREST_MAX of names (borrowed), nearest first. Names too far to be meant
 * are left out. Returns the count.
 */
size_t nearest_names(const char *wanted, const char *const *names, size_t count,
		     const char *best[static NEAREST_MAX]);
