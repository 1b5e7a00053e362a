/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Products of 64 bits by 64, also on machines whose compiler has no type for them. */
#pragma once

#include <stdint.h>

/* What mul_div() does, without a type of 128 bits. */
uint64_t mul_div_by_parts(uint64_t a, uint64_t b, uint64_t c);

/* a * b / c, rounded down; the quotient must fit. */
static inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c)
{
#ifdef __SIZEOF_INT128__
	return (uint64_t)((unsigned __int128)a * b / c);
#else
	return mul_div_by_parts(a, b, c);
#endif
}

/* (a * b) >> shift, of which 64 bits are kept; shift 63 at most. */
static inline uint64_t mul_shift(uint64_t a, uint32_t b, unsigned shift)
{
	uint64_t low = (a & UINT32_MAX) * b, high = (a >> 32) * b + (low >> 32);

	return shift < 32 ? high << (32 - shift) | (low & UINT32_MAX) >> shift
			  : high >> (shift - 32);
}
