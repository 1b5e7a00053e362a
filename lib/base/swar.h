/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Eight bytes of text at once, in one word: the first of them is its lowest byte. */
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

/* 0: no byte is zero; else the lowest bit that is set is within the first that is. */
static inline uint64_t zero_bytes(uint64_t word)
{
	return (word - EACH_BYTE(1)) & ~word & EACH_BYTE(0x80);
}

/* Of what zero_bytes returned, not 0. */
static inline unsigned first_byte(uint64_t zeros)
{
	return (unsigned)__builtin_ctzll(zeros) / 8;
}
