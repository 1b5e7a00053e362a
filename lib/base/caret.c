/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/caret.h"

#include <string.h>

/* Width of the part that is shown, in bytes. */
#define SHOWN_BEFORE 40
#define SHOWN_MAX 100

static bool caret_within_char(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

void buf_put_caret(struct buf *out, const char *text, const char *at)
{
	const char *from = at - text > SHOWN_BEFORE ? at - SHOWN_BEFORE : text;
	size_t len = strnlen(from, SHOWN_MAX);

	/* Do not begin or end within a character. */
	while (from < at && caret_within_char(*from)) {
		from++;
		len--;
	}
	while (len && caret_within_char(from[len]))
		len--;
	buf_puts(out, "\n  ");
	for (size_t i = 0; i < len; i++)
		buf_putc(out, from[i] == '\t' ? ' ' : from[i]);
	buf_puts(out, "\n  ");
	for (; from < at; from++)
		if (!caret_within_char(*from))
			buf_putc(out, ' ');
	buf_putc(out, '^');
}
