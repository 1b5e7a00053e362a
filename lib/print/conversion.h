/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One conversion of a printf format, parsed as format_decode() of the kernel's lib/vsprintf.c does.
 */
#pragma once

#include <stddef.h>

#include "print/format_int.h"

struct conversion {
	char kind;    /* 'd' integer, 'c', 's', 'p', '%'; 0: not a conversion */
	uint8_t size; /* bytes of an integer: 1, 2, 4 or 8 */
	bool star_width, star_precision;
	struct int_format format; /* flags, width and precision, for every kind */
	const char *suffix;	  /* letters after %p; borrowed from the format */
	size_t suffix_len;
};

/* text starts at the '%' and is terminated. Returns the characters used, more than 0. */
size_t conversion_parse(const char *text, unsigned word_size, struct conversion *ret);
