/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/plain.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

/* Sixteen bytes are checked at once, with vector instructions. */
typedef unsigned char block_t __attribute__((vector_size(16)));
typedef signed char signed_block_t __attribute__((vector_size(16)));

static bool byte_is_plain(unsigned char c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

static inline block_t block_load(const char *p)
{
	block_t b;

	memcpy(&b, p, sizeof(b));
	return b;
}

/* All bits of a byte are set if it is printable. DEL + 1 is negative, as are all higher bytes. */
static inline block_t block_printable(block_t b)
{
	return (block_t)((signed_block_t)(b + 1) > ' ');
}

static inline block_t block_quoted(block_t b)
{
	return (block_t)((b == '"') | (b == '\\'));
}

/* True if all bytes are printable and none is quoted. */
static inline bool block_is_plain(block_t all_printable, block_t some_quoted)
{
	block_t b = all_printable & ~some_quoted;
	uint64_t halves[2];

	memcpy(halves, &b, sizeof(halves));
	return (halves[0] & halves[1]) == UINT64_MAX;
}

const char *plain_end(const char *p, const char *end)
{
	for (; end - p >= (ptrdiff_t)sizeof(block_t); p += sizeof(block_t)) {
		block_t b = block_load(p);

		if (!block_is_plain(block_printable(b), block_quoted(b)))
			break;
	}
	while (p < end && byte_is_plain((unsigned char)*p))
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
	all_printable = block_printable(block_load(last));
	some_quoted = block_quoted(block_load(last));
	for (; p < last; p += sizeof(block_t)) {
		block_t b = block_load(p);

		all_printable &= block_printable(b);
		some_quoted |= block_quoted(b);
	}
	return block_is_plain(all_printable, some_quoted);
}
