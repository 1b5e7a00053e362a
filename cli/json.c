/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "json.h"

#include <inttypes.h>
#include <stdio.h>

/* The length of the well-formed UTF-8 sequence at s (RFC 3629), or 0. */
static unsigned utf8_sequence(const unsigned char *s)
{
	unsigned char low = 0x80, high = 0xbf;
	unsigned len;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		len = 2;
	} else if (s[0] >= 0xe0 && s[0] <= 0xef) {
		len = 3;
		low = s[0] == 0xe0 ? 0xa0 : 0x80;
		high = s[0] == 0xed ? 0x9f : 0xbf;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		len = 4;
		low = s[0] == 0xf0 ? 0x90 : 0x80;
		high = s[0] == 0xf4 ? 0x8f : 0xbf;
	} else {
		return 0;
	}
	if (s[1] < low || s[1] > high)
		return 0;
	for (unsigned i = 2; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return len;
}

static void put_string(struct buf *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	buf_putc(out, '"');
	while (*s) {
		unsigned len = utf8_sequence(s);

		if (!len)
			buf_puts(out, "\\ufffd");
		else if (*s == '"' || *s == '\\')
			buf_printf(out, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			buf_printf(out, "\\u%04x", *s);
		else
			buf_append(out, s, len);
		s += len ?: 1;
	}
	buf_putc(out, '"');
}

static void begin(struct json *j, const char *key)
{
	if (!j->empty)
		buf_putc(j->out, ',');
	if (j->depth) {
		buf_putc(j->out, '\n');
		for (unsigned i = 0; i < j->depth; i++)
			buf_puts(j->out, "  ");
	}
	j->empty = false;
	if (key) {
		put_string(j->out, key);
		buf_puts(j->out, ": ");
	}
}

void json_open(struct json *j, const char *key, char open)
{
	begin(j, key);
	buf_putc(j->out, open);
	j->depth++;
	j->empty = true;
}

void json_close(struct json *j, char close)
{
	j->depth--;
	if (!j->empty) {
		buf_putc(j->out, '\n');
		for (unsigned i = 0; i < j->depth; i++)
			buf_puts(j->out, "  ");
	}
	buf_putc(j->out, close);
	j->empty = false;
}

void json_string(struct json *j, const char *key, const char *value)
{
	begin(j, key);
	put_string(j->out, value ?: "");
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	buf_printf(j->out, "%" PRIu64, value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	buf_puts(j->out, value ? "true" : "false");
}

int json_print(struct json *j)
{
	int r;

	buf_putc(j->out, '\n');
	r = buf_error(j->out);
	if (r < 0)
		return r;
	return fwrite(j->out->data, 1, j->out->len, stdout) == j->out->len ? 0 : -errno;
}
