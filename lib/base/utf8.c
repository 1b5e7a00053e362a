/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/utf8.h"

size_t utf8_length(const unsigned char *p, size_t room)
{
	size_t n = p[0] < 0x80	 ? 1
		   : p[0] < 0xc2 ? 0
		   : p[0] < 0xe0 ? 2
		   : p[0] < 0xf0 ? 3
		   : p[0] < 0xf5 ? 4
				 : 0;

	if (n > room)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* Refuse overlong forms, surrogates, and characters beyond U+10FFFF. */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

size_t utf8_clip(const char *text, size_t max)
{
	size_t len = strnlen(text, max + 1);

	if (len <= max)
		return len;
	for (len = max; len && ((unsigned char)text[len] & 0xc0) == 0x80; len--)
		;
	return len;
}

bool utf8_is_ascii(const char *text, size_t len)
{
	uint64_t high = 0;

	for (; len >= sizeof(high); text += sizeof(high), len -= sizeof(high)) {
		uint64_t word;

		memcpy(&word, text, sizeof(word));
		high |= word;
	}
	while (len--)
		high |= (unsigned char)*text++;
	return !(high & UINT64_C(0x8080808080808080));
}

char *utf8_clean(char *out, const char *text, size_t len)
{
	while (len) {
		size_t n = utf8_length((const unsigned char *)text, len);

		if (n)
			out = mempcpy(out, text, n);
		else
			out = mempcpy(out, UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT));
		text += MAX(n, (size_t)1);
		len -= MAX(n, (size_t)1);
	}
	return out;
}
