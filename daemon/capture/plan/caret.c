/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/caret.h"

/* Width of the part that is shown, in bytes. */
#define SHOWN_BEFORE 40
#define SHOWN_MAX 100

void caret_put(const char *text, const char *at, struct buf *out)
{
	const char *from = at - text > SHOWN_BEFORE ? at - SHOWN_BEFORE : text;
	size_t len = strnlen(from, SHOWN_MAX);

	/* Do not begin or end within a character. */
	while (from < at && ((unsigned char)*from & 0xc0) == 0x80) {
		from++;
		len--;
	}
	while (len && ((unsigned char)from[len] & 0xc0) == 0x80)
		len--;
	buf_puts(out, "\n  ");
	for (size_t i = 0; i < len; i++)
		buf_putc(out, from[i] == '\t' ? ' ' : from[i]);
	buf_puts(out, "\n  ");
	for (; from < at; from++)
		if (((unsigned char)*from & 0xc0) != 0x80)
			buf_putc(out, ' ');
	buf_putc(out, '^');
}
