/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/buf.h"

#include <stdarg.h>

#include "base/vec.h"

void buf_deinit(struct buf *b)
{
	free(b->data);
	*b = BUF_INIT;
}

_cold_ _noinline_ char *buf_grow(struct buf *b, size_t extra)
{
	char *data = vec_grow(b->data, b->len, extra, &b->cap, VEC_MAX(b->data, b->cap), 1);

	if (!data) {
		b->failed = true;
		return NULL;
	}
	b->data = data;
	return data + b->len;
}

void buf_replace(struct buf *b, size_t at, size_t old_len, const char *text, size_t len)
{
	size_t rest = b->len - at - old_len;

	if (!buf_reserve(b, len))
		return;
	memmove(b->data + at + len, b->data + at + old_len, rest);
	if (len)
		memcpy(b->data + at, text, len);
	b->len = at + len + rest;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	p = n < 0 ? NULL : buf_reserve(b, (size_t)n + 1);
	if (!p) {
		b->failed = true;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

char *buf_string(struct buf *b)
{
	char *p = buf_reserve(b, 1);

	if (!p || b->failed)
		return NULL;
	*p = '\0';
	return b->data;
}
