/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/json.h"

#include <inttypes.h>

#include "base/plain.h"
#include "base/utf8.h"

static size_t json_escape_control(struct buf *out, unsigned char c, bool line)
{
	if (c == '\t') {
		buf_puts(out, "\\t");
		return 1;
	}
	if (line && c == '\n') {
		buf_putc(out, ' ');
		return 1;
	}
	buf_printf(out, line ? "\\\\x%02x" : "\\u%04x", c);
	return line ? 4 : 1;
}

static size_t json_escape_bytes(struct buf *out, const char *text, size_t len, bool line)
{
	/* An empty text may be NULL, to which nothing may be added. */
	const char *p = text, *end = len ? text + len : text;
	size_t units = 0;

	while (p < end) {
		const char *plain = plain_end(p, end);
		unsigned char c;
		size_t n;

		buf_append(out, p, (size_t)(plain - p));
		units += (size_t)(plain - p);
		p = plain;
		if (p == end)
			break;
		c = (unsigned char)*p;
		if (c == '"' || c == '\\') {
			buf_append(out, (char[]){ '\\', (char)c }, 2);
			units++;
			p++;
		} else if (c < ' ' || c == 0x7f) {
			units += json_escape_control(out, c, line);
			p++;
		} else if (!line && c == 0xc2 && end - p > 1 && (p[1] & 0xe0) == 0x80) {
			/* U+0080 to U+009F: terminals obey them, too. */
			units += json_escape_control(out, (unsigned char)p[1], line);
			p += 2;
		} else {
			n = utf8_length((const unsigned char *)p, (size_t)(end - p));
			if (n)
				buf_append(out, p, n);
			else
				buf_puts(out, UTF8_REPLACEMENT);
			units += n == 4 ? 2 : 1;
			p += n ?: 1;
		}
	}
	return units;
}

size_t json_escape(struct buf *out, const char *text, size_t len)
{
	return json_escape_bytes(out, text, len, false);
}

size_t json_escape_line(struct buf *out, const char *text, size_t len)
{
	return json_escape_bytes(out, text, len, true);
}

void json_put_string(struct buf *out, const char *text)
{
	buf_putc(out, '"');
	if (text)
		json_escape(out, text, strlen(text));
	buf_putc(out, '"');
}

void json_put_comma(struct buf *out)
{
	/*
	 * An empty buffer was just written out by output_settle(), which follows a complete
	 * element.
	 */
	char last = out->len ? out->data[out->len - 1] : '}';

	if (last != '{' && last != '[')
		buf_putc(out, ',');
}

void json_put_key(struct buf *out, const char *key)
{
	json_put_comma(out);
	json_put_string(out, key);
	buf_putc(out, ':');
}

void json_put_string_key(struct buf *out, const char *key, const char *value)
{
	json_put_key(out, key);
	json_put_string(out, value);
}

void json_put_u64_key(struct buf *out, const char *key, uint64_t value)
{
	json_put_key(out, key);
	buf_printf(out, "%" PRIu64, value);
}

void json_put_i64_key(struct buf *out, const char *key, int64_t value)
{
	json_put_key(out, key);
	buf_printf(out, "%" PRId64, value);
}

void json_put_bool_key(struct buf *out, const char *key, bool value)
{
	json_put_key(out, key);
	buf_puts(out, value ? "true" : "false");
}
