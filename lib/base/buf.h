/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A growable byte buffer. Appending fails only if memory runs out. The failure is sticky
 * (buf->failed), so a series of appends needs one check at its end, with buf_error().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

struct buf {
	char *data; /* owned; terminated only by buf_string() */
	size_t len, cap;
	bool failed;
};

#define BUF_INIT ((struct buf){ 0 })

void buf_deinit(struct buf *b);
#define _cleanup_buf_ _cleanup_(buf_deinit)

/* Slow path of buf_reserve(). NULL: out of memory. */
char *buf_grow(struct buf *b, size_t extra);

/* Room for extra more bytes at the end, which len does not count yet. NULL: out of memory. */
static inline char *buf_reserve(struct buf *b, size_t extra)
{
	if (likely(b->data && b->cap - b->len >= extra))
		return b->data + b->len;
	return buf_grow(b, extra);
}

static inline void buf_append(struct buf *b, const void *data, size_t len)
{
	char *p = buf_reserve(b, len);

	if (likely(p) && len) {
		memcpy(p, data, len);
		b->len += len;
	}
}

static inline void buf_putc(struct buf *b, char c)
{
	char *p = buf_reserve(b, 1);

	if (likely(p)) {
		*p = c;
		b->len++;
	}
}

static inline void buf_puts(struct buf *b, const char *s)
{
	buf_append(b, s, strlen(s));
}

/* Replaces old_len bytes at offset at by len bytes of text, which must not lie in b. */
void buf_replace(struct buf *b, size_t at, size_t old_len, const char *text, size_t len);

void buf_printf(struct buf *b, const char *fmt, ...) _printf_(2, 3);

/* The contents, terminated. Valid until the next append. NULL: an append failed. */
char *buf_string(struct buf *b);

static inline int buf_error(const struct buf *b)
{
	return b->failed ? -ENOMEM : 0;
}

static inline void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}
