/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/cell_text.h"

#include <endian.h>
#include <string.h>

#include "base/io.h"
#include "base/visible.h"
#include "print/format_int.h"

/* Spaces are written that many at once. */
#define SPACES 16U

size_t cell_width(const char *text, size_t len)
{
	size_t width = 0;

	for (size_t i = 0; i < len; i++)
		width += (text[i] & 0xc0) != 0x80;
	return width;
}

/* Returns the end of count spaces. Up to SPACES bytes behind it are written, too. */
static inline char *write_spaces(char *p, size_t count)
{
	for (; unlikely(count > SPACES); count -= SPACES, p += SPACES)
		memset(p, ' ', SPACES);
	memset(p, ' ', SPACES);
	return p + count;
}

/* The spaces before or after len characters. */
static inline char *write_fill(char *p, size_t len, size_t width)
{
	return write_spaces(p, width > len ? width - len : 0);
}

static inline size_t dec_digits(uint64_t n)
{
	size_t digits = 0;

	for (; unlikely(n > UINT32_MAX); n /= 10)
		digits++;
	return digits + format_dec_digits((uint32_t)n);
}

char *cell_write_count(char *p, uint64_t n, size_t width)
{
	return format_dec(write_fill(p, dec_digits(n), width), n);
}

char *cell_write_number(char *p, int64_t n, size_t width)
{
	if (likely(n >= 0))
		return cell_write_count(p, (uint64_t)n, width);
	p = write_fill(p, dec_digits(-(uint64_t)n) + 1, width);
	*p++ = '-';
	return format_dec(p, -(uint64_t)n);
}

char *cell_write_none(char *p, size_t width)
{
	p = write_fill(p, 1, width);
	*p = '-';
	return p + 1;
}

static inline char *write_pair(char *p, uint64_t n)
{
	memcpy(p, &format_digit_pairs[n * 2], 2);
	return p + 2;
}

/* Bytes in their order, the first one lowest. */
#define UNIT(a, b, c) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16)

/* How times from `from` on are written: a number of four digits, in steps. */
static const struct time_form {
	uint64_t from, step;
	uint32_t decimals, unit;
} time_forms[] = {
	{ 0, 1, 3, UNIT(' ', 'u', 's') },
	{ 10 * NSEC_PER_USEC, 10, 2, UNIT(' ', 'u', 's') },
	{ 99995, 100, 1, UNIT(' ', 'u', 's') },
	{ 999950, NSEC_PER_USEC, 3, UNIT(' ', 'm', 's') },
	{ 9999500, 10 * NSEC_PER_USEC, 2, UNIT(' ', 'm', 's') },
	{ 99995000, 100 * NSEC_PER_USEC, 1, UNIT(' ', 'm', 's') },
	{ 999950000, NSEC_PER_MSEC, 3, UNIT(' ', 's', 0) },
	{ 9999500000, 10 * NSEC_PER_MSEC, 2, UNIT(' ', 's', 0) },
	{ 99995000000, 100 * NSEC_PER_MSEC, 1, UNIT(' ', 's', 0) },
};
#define TIME_FORM_SECONDS 6

static char *write_long_time(char *p, uint64_t tenths, size_t width)
{
	p = format_dec(write_fill(p, dec_digits(tenths) + strlen(". s"), width), tenths / 10);
	p[0] = '.';
	p[1] = (char)('0' + tenths % 10);
	memcpy(p + 2, " s", 2);
	return p + 4;
}

static char *write_nanoseconds(char *p, uint64_t ns, size_t width)
{
	p = format_dec(write_fill(p, dec_digits(ns) + strlen(" ns"), width), ns);
	memcpy(p, " ns", 3);
	return p + 3;
}

/* Without branches: times are so different that none would be foreseen. */
char *cell_write_time(char *p, uint64_t ns, size_t width)
{
	const struct time_form *f;
	uint64_t n, digits, whole, text;
	size_t form = 0, len;
	char four[4];

	if (ns < NSEC_PER_USEC)
		return write_nanoseconds(p, ns, width);
	for (size_t i = 1; i < ARRAY_SIZE(time_forms); i++)
		form += ns >= time_forms[i].from;
	f = &time_forms[form];
	n = (ns + f->step / 2) / f->step;
	if (unlikely(n > 9999))
		return write_long_time(p, n, width);
	write_pair(write_pair(four, n / 100), n % 100);
	digits = (uint64_t)(unsigned char)four[0] | (uint64_t)(unsigned char)four[1] << 8 |
		 (uint64_t)(unsigned char)four[2] << 16 | (uint64_t)(unsigned char)four[3] << 24;
	whole = (UINT64_C(1) << (4 - f->decimals) * 8) - 1;
	text = (digits & whole) | (uint64_t)'.' << (4 - f->decimals) * 8 | (digits & ~whole) << 8 |
	       (uint64_t)f->unit << 40;
	text = htole64(text);
	len = form < TIME_FORM_SECONDS ? 8 : 7;
	p = write_fill(p, len, width);
	memcpy(p, &text, sizeof(text));
	return p + len;
}

char *cell_write_at(char *p, uint64_t ts, size_t width)
{
	const uint64_t seconds = ts / NSEC_PER_SEC, us = ts % NSEC_PER_SEC / NSEC_PER_USEC;

	if (unlikely(!ts))
		return cell_write_none(p, width);
	p = write_fill(p, dec_digits(seconds) + strlen(".123456"), width);
	p = format_dec(p, seconds);
	*p++ = '.';
	return write_pair(write_pair(write_pair(p, us / 10000), us / 100 % 100), us % 100);
}

/* Whether all eight bytes are printable ASCII. It may say no although they are. */
static inline bool are_plain(uint64_t bytes)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), high = ones * 0x80;

	return !((bytes | (bytes - ones * 0x20) | (bytes + ones)) & high);
}

/* Copies the text by two words that overlap. */
static inline bool write_words(char *p, struct text text)
{
	uint64_t head, tail;

	memcpy(&head, text.data, sizeof(head));
	memcpy(&tail, text.data + text.len - sizeof(tail), sizeof(tail));
	memcpy(p, &head, sizeof(head));
	memcpy(p + text.len - sizeof(tail), &tail, sizeof(tail));
	return are_plain(head) && are_plain(tail);
}

static inline bool write_half_words(char *p, struct text text)
{
	uint32_t head, tail;

	memcpy(&head, text.data, sizeof(head));
	memcpy(&tail, text.data + text.len - sizeof(tail), sizeof(tail));
	memcpy(p, &head, sizeof(head));
	memcpy(p + text.len - sizeof(tail), &tail, sizeof(tail));
	return are_plain((uint64_t)head << 32 | tail);
}

static inline bool write_bytes(char *p, struct text text)
{
	bool plain = true;

	for (uint32_t i = 0; i < text.len; i++) {
		p[i] = text.data[i];
		plain &= p[i] >= ' ' && p[i] < 0x7f;
	}
	return plain;
}

char *cell_write_short(char *p, struct text text, size_t width)
{
	bool plain;

	if (!text.len)
		text = TEXT("-");
	if (unlikely(text.len > 2 * sizeof(uint64_t)))
		return NULL;
	plain = text.len >= sizeof(uint64_t)   ? write_words(p, text)
		: text.len >= sizeof(uint32_t) ? write_half_words(p, text)
					       : write_bytes(p, text);
	return likely(plain) ? write_fill(p + text.len, text.len, width) : NULL;
}

static void put_fill(struct buf *out, size_t len, size_t width)
{
	char *p = width > len ? buf_reserve(out, width - len + SPACES) : NULL;

	if (p)
		out->len = (size_t)(write_spaces(p, width - len) - out->data);
}

size_t cell_put_right(struct buf *out, struct text text, size_t width)
{
	const size_t len = cell_width(text.data, text.len);

	put_fill(out, len, width);
	buf_append(out, text.data, text.len);
	return len;
}

size_t cell_put_left(struct buf *out, struct text text, size_t width)
{
	const size_t len = cell_width(text.data, text.len);

	buf_append(out, text.data, text.len);
	put_fill(out, len, width);
	return len;
}

size_t cell_put_visible(struct buf *out, struct text text, size_t max, size_t width)
{
	_cleanup_buf_ struct buf copy = BUF_INIT, visible = BUF_INIT;

	buf_append(&copy, text.data, MIN((size_t)text.len, max));
	buf_visible(&visible, text.len ? buf_string(&copy) ?: "" : "-", max);
	out->failed |= copy.failed || visible.failed;
	return cell_put_left(out, (struct text){ visible.data, (uint32_t)visible.len }, width);
}

void cell_put_count(struct buf *out, uint64_t n)
{
	char *p = buf_reserve(out, CELL_ROOM);

	if (p)
		out->len = (size_t)(cell_write_count(p, n, 0) - out->data);
}

void cell_put_number(struct buf *out, int64_t n)
{
	if (n < 0)
		buf_putc(out, '-');
	cell_put_count(out, n < 0 ? -(uint64_t)n : (uint64_t)n);
}
