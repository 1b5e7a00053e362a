/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pseudo-random numbers, the same in each run. */
#pragma once

#include <stdint.h>

#define RANDOM_FIRST UINT64_C(88172645463325252)

/* The next number. *state: the last one; RANDOM_FIRST at the start. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}
