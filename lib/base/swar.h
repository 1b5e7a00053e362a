/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes eight bytes of text in one word; the first byte is the lowest. */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define EACH_BYTE(b) (UINT64_C(0x0101010101010101) * (b))

static inline uint64_t load_bytes8(const void *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return le64toh(word);
}

/* Returns 0 if no byte is zero. Otherwise the lowest set bit lies in the first zero byte. */
static inline uint64_t zero_bytes(uint64_t word)
{
	return (word - EACH_BYTE(1)) & ~word & EACH_BYTE(0x80);
}

/* Index of the first zero byte. zeros comes from zero_bytes() and is not 0. */
static inline unsigned first_byte(uint64_t zeros)
{
	return (unsigned)__builtin_ctzll(zeros) / 8;
}
