/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "document.h"

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

static void begin(struct document *d, const char *key)
{
	if (!d->empty)
		buf_putc(d->out, ',');
	if (d->depth) {
		buf_putc(d->out, '\n');
		for (unsigned i = 0; i < d->depth; i++)
			buf_puts(d->out, "  ");
	}
	d->empty = false;
	if (key) {
		put_string(d->out, key);
		buf_puts(d->out, ": ");
	}
}

void document_open(struct document *d, const char *key, char open)
{
	begin(d, key);
	buf_putc(d->out, open);
	d->depth++;
	d->empty = true;
}

void document_close(struct document *d, char close)
{
	d->depth--;
	if (!d->empty) {
		buf_putc(d->out, '\n');
		for (unsigned i = 0; i < d->depth; i++)
			buf_puts(d->out, "  ");
	}
	buf_putc(d->out, close);
	d->empty = false;
}

void document_string(struct document *d, const char *key, const char *value)
{
	begin(d, key);
	put_string(d->out, value ?: "");
}

void document_uint(struct document *d, const char *key, uint64_t value)
{
	begin(d, key);
	buf_printf(d->out, "%" PRIu64, value);
}

void document_bool(struct document *d, const char *key, bool value)
{
	begin(d, key);
	buf_puts(d->out, value ? "true" : "false");
}

int document_print(struct document *d)
{
	int r;

	buf_putc(d->out, '\n');
	r = buf_error(d->out);
	if (r < 0)
		return r;
	return fwrite(d->out->data, 1, d->out->len, stdout) == d->out->len ? 0 : -errno;
}
