/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/wide.h"

uint64_t mul_div_by_parts(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
	uint64_t ll = al * bl, lh = al * bh, hl = ah * bl;
	uint64_t middle = (ll >> 32) + (uint32_t)lh + (uint32_t)hl;
	uint64_t low = middle << 32 | (uint32_t)ll;
	uint64_t high = ah * bh + (lh >> 32) + (hl >> 32) + (middle >> 32);

	/* Divides bit by bit: high becomes the remainder, low the quotient. */
	for (int i = 0; i < 64; i++) {
		uint64_t carry = high >> 63;

		high = high << 1 | low >> 63;
		low <<= 1;
		if (carry || high >= c) {
			high -= c;
			low |= 1;
		}
	}
	return low;
}
