/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/objects.h"

#include <string.h>

static char *object_ip4(char *p, const uint8_t *a, char kind, char order)
{
	for (int i = 0; i < 4; i++) {
		uint8_t v = a[order == 'l' ? 3 - i : i];

		if (kind == 'i') { /* pad with zeros */
			*p++ = (char)('0' + v / 100);
			*p++ = (char)('0' + v / 10 % 10);
			*p++ = (char)('0' + v % 10);
		} else {
			p = format_dec_u32(p, v);
		}
		if (i < 3)
			*p++ = '.';
	}
	return p;
}

static unsigned object_word16(const uint8_t *a, int i)
{
	return (unsigned)a[i * 2] << 8 | a[i * 2 + 1];
}

/* True for mapped and ISATAP addresses, which end in an IPv4 address. */
static bool ip6_has_ip4_tail(const uint8_t *a)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t isatap[3] = { 0, 0x5e, 0xfe };

	return !memcmp(a, mapped, 12) || ((a[8] & ~2) == 0 && !memcmp(a + 9, isatap, 3));
}

/*
 * Finds the longest run of zero words, the first one of equal length. Shorter than two words: none.
 */
static int ip6_longest_zeros(const uint8_t *a, int range, int *ret_at)
{
	int longest = 1;

	*ret_at = -1;
	for (int i = 0; i < range; i++) {
		int n = 0;

		while (i + n < range && !object_word16(a, i + n))
			n++;
		if (n > longest) {
			longest = n;
			*ret_at = i;
		}
	}
	return longest;
}

static char *object_ip6_compressed(char *p, const uint8_t *a)
{
	bool tail = ip6_has_ip4_tail(a), need_colon = false;
	int range = tail ? 6 : 8, at, longest = ip6_longest_zeros(a, range, &at);

	for (int i = 0; i < range; i++) {
		if (i == at) {
			if (need_colon || i == 0)
				*p++ = ':';
			*p++ = ':';
			need_colon = false;
			i += longest - 1;
			continue;
		}
		if (need_colon)
			*p++ = ':';
		p = format_hex(p, object_word16(a, i));
		need_colon = true;
	}
	if (tail) {
		if (need_colon)
			*p++ = ':';
		p = object_ip4(p, a + 12, 'I', 'b');
	}
	return p;
}

static char *object_ip6(char *p, const uint8_t *a, bool colons)
{
	for (int i = 0; i < 8; i++) {
		p = format_hex_padded(p, object_word16(a, i), 4);
		if (colons && i < 7)
			*p++ = ':';
	}
	return p;
}

static bool conversion_has_flag(const struct conversion *spec, char flag)
{
	return spec->suffix_len > 2 && memchr(spec->suffix + 2, flag, spec->suffix_len - 2);
}

static bool object_ip6_socket(const struct conversion *spec, const uint8_t *a, size_t avail,
			      struct buf *out)
{
	bool port = conversion_has_flag(spec, 'p'), flow = conversion_has_flag(spec, 'f'),
	     scope = conversion_has_flag(spec, 's');
	char text[96], *p = text;
	uint32_t info;

	if (avail < 28)
		return false;
	if (port || flow || scope)
		*p++ = '[';
	p = spec->suffix[0] == 'I' && conversion_has_flag(spec, 'c')
		    ? object_ip6_compressed(p, a + 8)
		    : object_ip6(p, a + 8, spec->suffix[0] == 'I');
	if (port || flow || scope)
		*p++ = ']';
	if (port) {
		*p++ = ':';
		p = format_dec_u32(p, object_word16(a, 1));
	}
	if (flow) {
		memcpy(&info, a + 4, 4);
		*p++ = '/';
		p = format_dec_u32(p, __builtin_bswap32(info) & 0x0fffffff);
	}
	if (scope) {
		memcpy(&info, a + 24, 4);
		*p++ = '%';
		p = format_dec_u32(p, info);
	}
	buf_append(out, text, (size_t)(p - text));
	return true;
}

static bool object_socket(const struct object_env *env, const struct conversion *spec,
			  const uint8_t *a, size_t avail, struct buf *out)
{
	char text[32], *p = text;
	unsigned family;

	if (avail < 2)
		return false;
	family = env->big_endian ? object_word16(a, 0) : (unsigned)a[1] << 8 | a[0];
	if (family == 10)
		return object_ip6_socket(spec, a, avail, out);
	if (family != 2) {
		buf_puts(out, "(einval)");
		return true;
	}
	if (avail < 8)
		return false;
	p = object_ip4(p, a + 4, spec->suffix[0], 'b');
	if (conversion_has_flag(spec, 'p')) {
		*p++ = ':';
		p = format_dec_u32(p, object_word16(a, 1));
	}
	buf_append(out, text, (size_t)(p - text));
	return true;
}

static bool object_ip(const struct object_env *env, const struct conversion *spec, const uint8_t *a,
		      size_t avail, struct buf *out)
{
	char kind = spec->suffix[0], version = spec->suffix_len > 1 ? spec->suffix[1] : 0;
	char option = spec->suffix_len > 2 ? spec->suffix[2] : 0, text[64], *p = text;

	switch (version) {
	case '4':
		if (avail < 4)
			return false;
		if (option == 'h' && !env->big_endian)
			option = 'l';
		p = object_ip4(p, a, kind, option);
		break;
	case '6':
		if (avail < 16)
			return false;
		p = kind == 'I' && option == 'c' ? object_ip6_compressed(p, a)
						 : object_ip6(p, a, kind == 'I');
		break;
	case 'S':
		return object_socket(env, spec, a, avail, out);
	default:
		return false;
	}
	buf_append(out, text, (size_t)(p - text));
	return true;
}

static bool object_mac(const struct conversion *spec, const uint8_t *a, size_t avail,
		       struct buf *out)
{
	char option = spec->suffix_len > 1 ? spec->suffix[1] : 0, text[20], *p = text;

	if (avail < 6)
		return false;
	for (int i = 0; i < 6; i++) {
		p = format_hex_byte(p, a[option == 'R' ? 5 - i : i]);
		if (spec->suffix[0] == 'M' && i < 5)
			*p++ = option == 'F' ? '-' : ':';
	}
	buf_append(out, text, (size_t)(p - text));
	return true;
}

static bool object_uuid(const struct conversion *spec, const uint8_t *a, size_t avail,
			struct buf *out)
{
	static const uint8_t big[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	static const uint8_t little[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	char option = spec->suffix_len > 1 ? spec->suffix[1] : 'b', text[40], *p = text;
	const uint8_t *order = option == 'l' || option == 'L' ? little : big;

	if (avail < 16)
		return false;
	for (int i = 0; i < 16; i++) {
		p = format_hex_byte(p, a[order[i]]);
		if (i == 3 || i == 5 || i == 7 || i == 9)
			*p++ = '-';
	}
	if (option == 'L' || option == 'B')
		for (char *c = text; c < p; c++)
			*c = (char)(*c >= 'a' ? *c - 'a' + 'A' : *c);
	buf_append(out, text, (size_t)(p - text));
	return true;
}

static bool object_hex(const struct conversion *spec, const uint8_t *a, size_t avail, int count,
		       struct buf *out)
{
	char option = spec->suffix_len > 1 ? spec->suffix[1] : 0;
	char separator = option == 'C' ? ':' : option == 'D' ? '-' : option == 'N' ? 0 : ' ';
	char text[64 * 3], *p = text;

	if (count == 0)
		return true;
	count = count < 0 ? 1 : MIN(count, 64);
	if (avail < (size_t)count)
		return false;
	for (int i = 0; i < count; i++) {
		p = format_hex_byte(p, a[i]);
		if (separator && i < count - 1)
			*p++ = separator;
	}
	buf_append(out, text, (size_t)(p - text));
	return true;
}

/* A bitmap is an array of longs of the recorded machine. */
static bool bitmask_bit(const struct object_env *env, const uint8_t *a, unsigned i)
{
	unsigned byte = i / 8;

	if (env->big_endian)
		byte ^= env->word_size - 1;
	return a[byte] >> (i % 8) & 1;
}

void bitmask_print(const struct object_env *env, const uint8_t *data, unsigned bits,
		   struct buf *out)
{
	unsigned chunk = bits % 32 ? bits % 32 : 32;

	for (int at = (int)((bits + 31) / 32 * 32) - 32; at >= 0; at -= 32, chunk = 32) {
		uint32_t v = 0;
		char text[16];

		for (unsigned i = 0; i < chunk; i++)
			v |= (uint32_t)bitmask_bit(env, data, (unsigned)at + i) << i;
		buf_append(out, text, (size_t)(format_hex_padded(text, v, (chunk + 3) / 4) - text));
		if (at)
			buf_putc(out, ',');
	}
}

static void bitmask_list(const struct object_env *env, const uint8_t *data, unsigned bits,
			 struct buf *out)
{
	bool first = true;

	for (unsigned i = 0; i < bits; i++) {
		char text[32], *p = text;
		unsigned from = i;

		if (!bitmask_bit(env, data, i))
			continue;
		while (i + 1 < bits && bitmask_bit(env, data, i + 1))
			i++;
		if (!first)
			*p++ = ',';
		first = false;
		p = format_dec_u32(p, from);
		if (i > from) {
			*p++ = '-';
			p = format_dec_u32(p, i);
		}
		buf_append(out, text, (size_t)(p - text));
	}
}

static bool object_bitmap(const struct object_env *env, const struct conversion *spec,
			  const uint8_t *data, size_t avail, int count, struct buf *out)
{
	unsigned bits = (unsigned)MAX(count, 0), word = env->word_size * 8;

	if ((bits + word - 1) / word * env->word_size > avail)
		return false;
	if (spec->suffix_len > 1 && spec->suffix[1] == 'l')
		bitmask_list(env, data, bits, out);
	else
		bitmask_print(env, data, bits, out);
	return true;
}

/* %pa, %pap, %pad: a physical or DMA address, passed by reference. */
static bool object_address(const uint8_t *a, size_t avail, const struct object_env *env,
			   struct buf *out)
{
	char text[24] = "0x", *p = text + 2;

	if (avail < 8)
		return false;
	for (int i = 0; i < 8; i++)
		p = format_hex_byte(p, a[env->big_endian ? i : 7 - i]);
	buf_append(out, text, (size_t)(p - text));
	return true;
}

bool object_print(const struct object_env *env, const struct conversion *spec, const uint8_t *data,
		  size_t avail, int count, struct buf *out)
{
	switch (spec->suffix_len ? spec->suffix[0] : 0) {
	case 'I':
	case 'i':
		return object_ip(env, spec, data, avail, out);
	case 'M':
	case 'm':
		return object_mac(spec, data, avail, out);
	case 'U':
		return object_uuid(spec, data, avail, out);
	case 'h':
		return object_hex(spec, data, avail, count, out);
	case 'b':
		return object_bitmap(env, spec, data, avail, count, out);
	case 'a':
		return object_address(data, avail, env, out);
	default:
		return false;
	}
}
