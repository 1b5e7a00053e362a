/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/format_int.h"

#define PAIRS(t) #t "0" #t "1" #t "2" #t "3" #t "4" #t "5" #t "6" #t "7" #t "8" #t "9"
const char format_digit_pairs[200] __attribute__((nonstring)) =
	PAIRS(0) PAIRS(1) PAIRS(2) PAIRS(3) PAIRS(4) PAIRS(5) PAIRS(6) PAIRS(7) PAIRS(8) PAIRS(9);

#define HEX_ROW(h)                                                                                 \
#h "0" #h "1" #h "2" #h "3" #h "4" #h "5" #h "6" #h "7" #h "8" #h "9" #h "a" #h "b" #h     \
	   "c" #h "d" #h "e" #h "f"
const char format_hex_pairs[512] __attribute__((nonstring)) = HEX_ROW(0) HEX_ROW(1) HEX_ROW(2)
	HEX_ROW(3) HEX_ROW(4) HEX_ROW(5) HEX_ROW(6) HEX_ROW(7) HEX_ROW(8) HEX_ROW(9) HEX_ROW(a)
		HEX_ROW(b) HEX_ROW(c) HEX_ROW(d) HEX_ROW(e) HEX_ROW(f);

char *format_dec_long(char *p, uint64_t v)
{
	const uint64_t e9 = 1000000000;
	uint32_t low;

	if (v < e9)
		return format_dec_u32(p, (uint32_t)v);
	low = (uint32_t)(v % e9);
	p = format_dec_long(p, v / e9);
	for (int i = 8; i > 0; i -= 2) {
		memcpy(p + i - 1, &format_digit_pairs[low % 100 * 2], 2);
		low /= 100;
	}
	*p = (char)('0' + low);
	return p + 9;
}

char *format_hex_padded(char *p, uint64_t v, unsigned digits)
{
	unsigned i = digits;

	for (; i >= 2; v >>= 8) {
		i -= 2;
		memcpy(p + i, &format_hex_pairs[(v & 0xff) * 2], 2);
	}
	if (i)
		*p = format_hex_pairs[(v & 15) * 2 + 1];
	return p + digits;
}

/* Writes only the digits. */
static unsigned format_digits(char *p, uint64_t v, const struct int_format *f)
{
	char *end = p;

	if (f->base == 10)
		return (unsigned)(format_dec(p, v) - p);
	if (f->base == 8) {
		unsigned n = v ? (66U - (unsigned)__builtin_clzll(v)) / 3 : 1;

		for (unsigned i = n; i-- > 0; v >>= 3)
			p[i] = (char)('0' + (v & 7));
		return n;
	}
	end = format_hex(p, v);
	if (f->upper)
		for (char *c = p; c < end; c++)
			*c = (char)(*c >= 'a' ? *c - 'a' + 'A' : *c);
	return (unsigned)(end - p);
}

static char *format_fill(char *p, char c, int n)
{
	if (n <= 0)
		return p;
	memset(p, c, (size_t)n);
	return p + n;
}

char *format_number(char *p, uint64_t v, const struct int_format *f)
{
	char digits[INT_TEXT_MAX], sign = 0;
	bool prefix = f->special && f->base != 10, is_zero = v == 0;
	bool zero = f->zero && !f->left;
	int width = f->width, count, precision;

	if (f->is_signed) {
		if ((int64_t)v < 0) {
			sign = '-';
			v = 0 - v;
		} else if (f->plus) {
			sign = '+';
		} else if (f->space) {
			sign = ' ';
		}
		width -= sign != 0;
	}
	if (prefix)
		width -= f->base == 16 ? 2 : !is_zero;
	count = (int)format_digits(digits, v, f);
	precision = f->precision > count ? f->precision : count;
	width -= precision;
	if (!zero && !f->left)
		p = format_fill(p, ' ', width);
	if (sign)
		*p++ = sign;
	if (prefix && (f->base == 16 || !is_zero)) {
		*p++ = '0';
		if (f->base == 16)
			*p++ = f->upper ? 'X' : 'x';
	}
	if (zero)
		p = format_fill(p, '0', width);
	p = format_fill(p, '0', precision - count);
	memcpy(p, digits, (size_t)count);
	p += count;
	return f->left ? format_fill(p, ' ', width) : p;
}
