/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Formats integers as number() of the kernel's lib/vsprintf.c does. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

struct int_format {
	uint8_t base; /* 8, 10 or 16 */
	bool is_signed;
	bool left, zero, plus, space, special, upper;
	int width, precision; /* -1: none */
};

/* The longest unpadded integer: 22 octal digits, prefix and sign. */
#define INT_TEXT_MAX 26

extern const char format_digit_pairs[200];
extern const char format_hex_pairs[512];

/* Both write at p without a terminator and return the end. p needs room for INT_TEXT_MAX bytes. */
static inline char *format_dec_u32(char *p, uint32_t v);
static inline char *format_dec(char *p, uint64_t v);
static inline char *format_hex(char *p, uint64_t v);
static inline char *format_hex_byte(char *p, uint8_t v);
/* p needs room for INT_TEXT_MAX, width and precision together. */
char *format_number(char *p, uint64_t v, const struct int_format *f);
/* Writes exactly `digits` hexadecimal digits. */
char *format_hex_padded(char *p, uint64_t v, unsigned digits);

char *format_dec_long(char *p, uint64_t v);

static inline unsigned format_dec_digits(uint32_t v)
{
	return v < 10		? 1
	       : v < 100	? 2
	       : v < 1000	? 3
	       : v < 10000	? 4
	       : v < 100000	? 5
	       : v < 1000000	? 6
	       : v < 10000000	? 7
	       : v < 100000000	? 8
	       : v < 1000000000 ? 9
				: 10;
}

static inline char *format_dec_u32(char *p, uint32_t v)
{
	char *end = p + format_dec_digits(v), *q = end;

	while (v >= 100) {
		q -= 2;
		memcpy(q, &format_digit_pairs[v % 100 * 2], 2);
		v /= 100;
	}
	if (v >= 10)
		memcpy(p, &format_digit_pairs[v * 2], 2);
	else
		*p = (char)('0' + v);
	return end;
}

static inline char *format_dec(char *p, uint64_t v)
{
	return v <= UINT32_MAX ? format_dec_u32(p, (uint32_t)v) : format_dec_long(p, v);
}

/* Writes all sixteen digits. */
#ifdef __SSE2__
static inline void format_hex_digits(char *p, uint64_t v)
{
	const __m128i low = _mm_set1_epi8(15);
	__m128i bytes, digits;

	v = __builtin_bswap64(v);
	bytes = _mm_loadl_epi64((const __m128i *)&v);
	digits = _mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi16(bytes, 4), low),
				   _mm_and_si128(bytes, low));
	bytes = _mm_and_si128(_mm_cmpgt_epi8(digits, _mm_set1_epi8(9)),
			      _mm_set1_epi8('a' - '0' - 10));
	digits = _mm_add_epi8(_mm_add_epi8(digits, _mm_set1_epi8('0')), bytes);
	_mm_storeu_si128((__m128i *)p, digits);
}
#else
static inline void format_hex_digits(char *p, uint64_t v)
{
	for (int i = 14; i >= 0; i -= 2, v >>= 8)
		memcpy(p + i, &format_hex_pairs[(v & 0xff) * 2], 2);
}
#endif

static inline char *format_hex(char *p, uint64_t v)
{
	unsigned digits;

	/* Many arguments are below 16. */
	if (v < 16) {
		*p = format_hex_pairs[v * 2 + 1];
		return p + 1;
	}
	digits = (67U - (unsigned)__builtin_clzll(v)) / 4;
	/* Shifting left drops the leading zeros. The bytes after the digits are scratch space. */
	format_hex_digits(p, v << (64 - digits * 4));
	return p + digits;
}

static inline char *format_hex_byte(char *p, uint8_t v)
{
	memcpy(p, &format_hex_pairs[v * 2], 2);
	return p + 2;
}
