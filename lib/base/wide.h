/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Products of 64 by 64 bits, also for compilers without a 128-bit type. */
#pragma once

#include <stdint.h>

/* Computes mul_div() without a 128-bit type. */
uint64_t mul_div_by_parts(uint64_t a, uint64_t b, uint64_t c);

/* a * b / c, rounded down. The quotient must fit into 64 bits. */
static inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c)
{
#ifdef __SIZEOF_INT128__
	return (uint64_t)((unsigned __int128)a * b / c);
#else
	return mul_div_by_parts(a, b, c);
#endif
}

/* The low 64 bits of (a * b) >> shift; shift is at most 63. */
static inline uint64_t mul_shift(uint64_t a, uint32_t b, unsigned shift)
{
	uint64_t low = (a & UINT32_MAX) * b, high = (a >> 32) * b + (low >> 32);

	return shift < 32 ? high << (32 - shift) | (low & UINT32_MAX) >> shift
			  : high >> (shift - 32);
}
