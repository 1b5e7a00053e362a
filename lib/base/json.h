/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writing JSON without a tree: strings of any bytes become valid UTF-8. */
#pragma once

#include "base/buf.h"

/*
 * Appends text, escaped, without the quotes: what is no UTF-8 becomes U+FFFD.
 * Returns its length in UTF-16 units, as JavaScript counts it.
 */
size_t json_escape(struct buf *out, const char *text, size_t len);

/*
 * The same for one line of trace text. Perfetto's reader takes escapes of the \uXXXX
 * kind literally, so that control characters are spelled out ("\x1b") instead;
 * a newline, which would end the line, becomes a space.
 */
size_t json_escape_line(struct buf *out, const char *text, size_t len);

/* "text", in quotes. NULL: the empty string. */
void json_put_string(struct buf *out, const char *text);
/* ,"key": with the comma unless the buffer ends in an opening bracket. */
void json_put_key(struct buf *out, const char *key);
void json_put_string_key(struct buf *out, const char *key, const char *value);
void json_put_u64_key(struct buf *out, const char *key, uint64_t value);
void json_put_i64_key(struct buf *out, const char *key, int64_t value);
void json_put_bool_key(struct buf *out, const char *key, bool value);
/* ',' unless the buffer ends in an opening bracket. */
void json_put_comma(struct buf *out);
