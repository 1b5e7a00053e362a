/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/visible.h"

#include "base/utf8.h"

#define ELLIPSIS "..."

/* U+0080 to U+009F: a terminal may read them as ESC and a letter. */
static bool visible_is_c1(const unsigned char *p, size_t length)
{
	return length == 2 && p[0] == 0xc2 && p[1] < 0xa0;
}

static void visible_escape(struct buf *out, const unsigned char *p, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (p[i] == '\n')
			buf_puts(out, "\\n");
		else if (p[i] == '\t')
			buf_puts(out, "\\t");
		else
			buf_printf(out, "\\x%02x", p[i]);
	}
}

void buf_visible(struct buf *out, const char *text, size_t max)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
	size_t begin = out->len, fits = begin;

	while (p < end && !out->failed) {
		size_t length = utf8_length(p, (size_t)(end - p));

		if (!length || visible_is_c1(p, length) ||
		    (length == 1 && (*p < 0x20 || *p == 0x7f)))
			visible_escape(out, p, MAX(length, (size_t)1));
		else
			buf_append(out, p, length);
		p += MAX(length, (size_t)1);
		if (out->len - begin > max) {
			out->len = fits;
			buf_puts(out, ELLIPSIS);
			return;
		}
		if (out->len - begin + strlen(ELLIPSIS) <= max)
			fits = out->len;
	}
}
