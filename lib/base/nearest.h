/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The names nearest to a mistyped one. */
#pragma once

#include <stddef.h>

#define NEAREST_MAX 3

/*
 * Fills best with up to NEAREST_MAX of names (borrowed), nearest first; none
 * that is too far away to have been meant. Returns their number.
 */
size_t nearest_names(const char *wanted, const char *const *names, size_t count,
		     const char *best[static NEAREST_MAX]);
