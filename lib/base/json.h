/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes JSON piece by piece. Strings of any bytes become valid UTF-8. */
#pragma once

#include "base/buf.h"

/*
 * Appends text, escaped, without quotes. Invalid UTF-8 becomes U+FFFD. Returns the length in UTF-16
 * units, as JavaScript counts.
 */
size_t json_escape(struct buf *out, const char *text, size_t len);

/*
 * Like json_escape(), for one line of trace text. Perfetto's reader does not decode \uXXXX escapes,
 * so control characters become text ("\x1b"). A newline becomes a space.
 */
size_t json_escape_line(struct buf *out, const char *text, size_t len);

/* Appends "text" in quotes. NULL: the empty string. */
void json_put_string(struct buf *out, const char *text);
/* Appends ,"key": with the comma unless the buffer ends in an opening bracket. */
void json_put_key(struct buf *out, const char *key);
void json_put_string_key(struct buf *out, const char *key, const char *value);
void json_put_u64_key(struct buf *out, const char *key, uint64_t value);
void json_put_i64_key(struct buf *out, const char *key, int64_t value);
void json_put_bool_key(struct buf *out, const char *key, bool value);
/* Appends a comma unless the buffer ends in an opening bracket. */
void json_put_comma(struct buf *out);
