/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values of a table's cells as text for people, filled up with spaces to `width` characters: before
 * numbers, after texts. Millions of rows may be written: numbers are formatted in place.
 */
#pragma once

#include "base/buf.h"
#include "marks/value.h"

/* Bytes that a function may write beyond `width`. */
#define CELL_ROOM 64U

/* Each writes at p, without a terminator, and returns the end. */
char *cell_write_number(char *p, int64_t n, size_t width);
char *cell_write_count(char *p, uint64_t n, size_t width);
/* ns with a unit and four digits: "12.35 us". */
char *cell_write_time(char *p, uint64_t ns, size_t width);
/* Seconds and microseconds; 0: "-". */
char *cell_write_at(char *p, uint64_t ts, size_t width);
/* "-": a value that is not known. */
char *cell_write_none(char *p, size_t width);
/* A text of at most 16 bytes; empty: "-". NULL: it is longer, or has bytes that need escapes. */
char *cell_write_short(char *p, struct text text, size_t width);

/* Appends any text, at most max bytes, made visible: base/visible.h. Returns its characters. */
size_t cell_put_visible(struct buf *out, struct text text, size_t max, size_t width);
/* Text that is safe to show, before the spaces or after them. */
size_t cell_put_left(struct buf *out, struct text text, size_t width);
size_t cell_put_right(struct buf *out, struct text text, size_t width);
/* Characters, not bytes; those that take two places on a screen are rare. */
size_t cell_width(const char *text, size_t len);

/* Appends digits alone. */
void cell_put_number(struct buf *out, int64_t n);
void cell_put_count(struct buf *out, uint64_t n);
