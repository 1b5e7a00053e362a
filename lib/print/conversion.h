/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One conversion of a printf format, as format_decode() of the kernel's lib/vsprintf.c reads it. */
#pragma once

#include <stddef.h>

#include "print/format_int.h"

struct conversion {
	char kind;    /* 'd' integer, 'c', 's', 'p', '%'; 0: not a conversion */
	uint8_t size; /* bytes of an integer as it is passed and printed: 1, 2, 4, 8 */
	bool star_width, star_precision;
	struct int_format format; /* flags, width and precision for every kind */
	const char *suffix;	  /* of %p: what kind of pointer; borrowed from the format */
	size_t suffix_len;
};

/* text: at the '%', terminated. Returns the characters used, above 0. */
size_t conversion_parse(const char *text, unsigned word_size, struct conversion *ret);
