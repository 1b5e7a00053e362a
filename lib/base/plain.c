/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/plain.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

/* Sixteen bytes are checked at once, with vector instructions. */
typedef unsigned char block_t __attribute__((vector_size(16)));
typedef signed char signed_block_t __attribute__((vector_size(16)));

static bool is_plain_byte(unsigned char c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

static inline block_t load(const char *p)
{
	block_t b;

	memcpy(&b, p, sizeof(b));
	return b;
}

/* All bits of a byte are set if it is printable. DEL + 1 is negative, as are all higher bytes. */
static inline block_t printable(block_t b)
{
	return (block_t)((signed_block_t)(b + 1) > ' ');
}

static inline block_t quoted(block_t b)
{
	return (block_t)((b == '"') | (b == '\\'));
}

/* True if all bytes are printable and none is quoted. */
static inline bool passes(block_t all_printable, block_t some_quoted)
{
	block_t b = all_printable & ~some_quoted;
	uint64_t halves[2];

	memcpy(halves, &b, sizeof(halves));
	return (halves[0] & halves[1]) == UINT64_MAX;
}

const char *plain_end(const char *p, const char *end)
{
	for (; end - p >= (ptrdiff_t)sizeof(block_t); p += sizeof(block_t)) {
		block_t b = load(p);

		if (!passes(printable(b), quoted(b)))
			break;
	}
	while (p < end && is_plain_byte((unsigned char)*p))
		p++;
	return p;
}

_hot_ bool is_plain(const char *text, size_t len)
{
	block_t all_printable, some_quoted;
	const char *p = text, *last;

	if (unlikely(len < sizeof(block_t)))
		return plain_end(text, text + len) == text + len;
	/* The last block may overlap the one before. */
	last = text + len - sizeof(block_t);
	all_printable = printable(load(last));
	some_quoted = quoted(load(last));
	for (; p < last; p += sizeof(block_t)) {
		block_t b = load(p);

		all_printable &= printable(b);
		some_quoted |= quoted(b);
	}
	return passes(all_printable, some_quoted);
}
