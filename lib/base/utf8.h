/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* UTF-8 by RFC 3629. The kernel's strings may contain any bytes and be cut anywhere. */
#pragma once

#include "base/buf.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for each invalid byte */

/* Length of the valid character at p; 0: invalid. room: bytes at p, above 0. */
size_t utf8_length(const unsigned char *p, size_t room);

/* The longest prefix of text in bytes that fits into max and cuts no character. */
size_t utf8_clip(const char *text, size_t max);

/* True if all bytes are ASCII, the common case. Checks eight bytes at a time. */
bool utf8_is_ascii(const char *text, size_t len);

/*
 * Copies text to out and replaces invalid bytes. Returns the end. out needs len * UTF8_GROWTH
 * bytes.
 */
#define UTF8_GROWTH 3
char *utf8_clean(char *out, const char *text, size_t len);
