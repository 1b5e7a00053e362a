/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* UTF-8 as RFC 3629 has it: the kernel's strings may be any bytes, cut anywhere. */
#pragma once

#include "base/buf.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for each byte that fits nowhere */

/* Bytes of the well-formed character at p; 0: there is none. room: bytes at p, above 0. */
size_t utf8_length(const unsigned char *p, size_t room);

/* Of text, the bytes that fit into max without a character being cut. */
size_t utf8_clip(const char *text, size_t max);

/* True if all of it is ASCII; the usual case, eight bytes at a time. */
bool utf8_is_ascii(const char *text, size_t len);

/*
 * Copies text to out, bad bytes replaced; returns where it stopped. Room for
 * UTF8_GROWTH times len is enough.
 */
#define UTF8_GROWTH 3
char *utf8_clean(char *out, const char *text, size_t len);
