/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Protobuf's wire format, as far as the per-event path writes it. Each function takes a position
 * with enough room and returns the position after what it wrote.
 */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define WIRE_VARINT_MAX 10 /* bytes */
#define WIRE_TAG_MAX 5	   /* bytes: field numbers have 29 bits */

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

static inline uint8_t *wire_varint(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

/* Bytes of value as a varint: bits / 7, by a multiplication that is exact up to 63. */
static inline unsigned wire_size(uint64_t value)
{
	return (((63 - (unsigned)__builtin_clzll(value | 1)) * 9 + 9) >> 6) + 1;
}

/* Spreads 28 bits to seven per byte. */
static inline uint32_t wire_spread(uint32_t value)
{
	value = (value & 0x0fffc000) << 2 | (value & 0x3fff);
	return (value & 0x3f803f80) << 1 | (value & 0x007f007f);
}

/* Like wire_varint_wide(), for a value of two to four bytes; writes four. */
static inline uint8_t *wire_varint_middle(uint8_t *p, uint32_t value)
{
	unsigned more = wire_size(value) - 1;
	uint32_t bytes = htole32(wire_spread(value) | 0x00808080U >> (24 - 8 * more));

	memcpy(p, &bytes, sizeof(bytes));
	return p + more + 1;
}

/* The low 28 bits of a longer value: four bytes; the varint of the other bits must follow. */
static inline uint8_t *wire_varint_low(uint8_t *p, uint64_t value)
{
	uint32_t bytes = htole32(wire_spread((uint32_t)value) | 0x80808080U);

	memcpy(p, &bytes, sizeof(bytes));
	return p + sizeof(bytes);
}

/*
 * Writes a varint without a loop, whose end branch predictors miss: spreads 7 bits to each byte in
 * steps and sets the continuation bits. Writes up to 8 bytes, or the length needed.
 */
static inline uint8_t *wire_varint_wide(uint8_t *p, uint64_t value)
{
	static const uint64_t follows[] = {
		0,
		UINT64_C(0x80),
		UINT64_C(0x8080),
		UINT64_C(0x808080),
		UINT64_C(0x80808080),
		UINT64_C(0x8080808080),
		UINT64_C(0x808080808080),
		UINT64_C(0x80808080808080),
	};
	uint64_t bytes = value;
	unsigned more;

	if (value < 0x80) {
		*p = (uint8_t)value;
		return p + 1;
	}
	if (value < 1 << 28)
		return wire_varint_middle(p, (uint32_t)value);
	more = wire_size(value) - 1;
	if (__builtin_expect(more > 7, 0))
		return wire_varint(p, value);
	bytes = (bytes & UINT64_C(0x00fffffff0000000)) << 4 | (bytes & 0x0fffffff);
	bytes = (bytes & UINT64_C(0x0fffc0000fffc000)) << 2 |
		(bytes & UINT64_C(0x00003fff00003fff));
	bytes = (bytes & UINT64_C(0x3f803f803f803f80)) << 1 |
		(bytes & UINT64_C(0x007f007f007f007f));
	bytes = htole64(bytes | follows[more]);
	memcpy(p, &bytes, sizeof(bytes));
	return p + more + 1;
}

static inline uint8_t *wire_tag(uint8_t *p, uint32_t field, enum wire_type type)
{
	return wire_varint(p, (uint64_t)field << 3 | type);
}

static inline uint8_t *wire_uint(uint8_t *p, uint32_t field, uint64_t value)
{
	return wire_varint(wire_tag(p, field, WIRE_VARINT), value);
}

static inline uint8_t *wire_bytes(uint8_t *p, uint32_t field, const void *data, size_t len)
{
	p = wire_varint(wire_tag(p, field, WIRE_BYTES), len);
	memcpy(p, data, len);
	return p + len;
}

/*
 * A submessage of unknown length. wire_open() reserves one byte for the length, mostly enough;
 * otherwise wire_close() moves the content, and may write up to WIRE_VARINT_MAX bytes past end.
 */
static inline uint8_t *wire_open(uint8_t *p, uint32_t field)
{
	return wire_tag(p, field, WIRE_BYTES) + 1;
}

static inline uint8_t *wire_close(uint8_t *content, uint8_t *end)
{
	size_t len = (size_t)(end - content), extra;

	if (__builtin_expect(len < 0x80, 1)) {
		content[-1] = (uint8_t)len;
		return end;
	}
	extra = wire_size(len) - 1;
	memmove(content + extra, content, len);
	wire_varint(content - 1, len);
	return end + extra;
}

/*
 * For long content that must not move: the length always takes WIRE_WIDE bytes, as in Perfetto's
 * own traces.
 */
#define WIRE_WIDE 5

static inline uint8_t *wire_open_wide(uint8_t *p, uint32_t field)
{
	return wire_tag(p, field, WIRE_BYTES) + WIRE_WIDE;
}

static inline void wire_close_wide(uint8_t *content, size_t len)
{
	for (unsigned i = 0; i < WIRE_WIDE; i++)
		content[(int)i - WIRE_WIDE] =
			(uint8_t)((len >> 7 * i & 0x7f) | (i + 1 < WIRE_WIDE ? 0x80 : 0));
}
