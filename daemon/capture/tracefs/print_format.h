/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How an event's print fmt uses a field. This is no decoder: it only tells whether the text shows
 * the field's value.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct span {
	const char *text;
	size_t len;
};

/*
 * True for a character of a C name. ASCII only: the kernel's isalnum() also accepts bytes of
 * Latin 1.
 */
static inline bool span_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

enum print_use {
	PRINT_USE_UNKNOWN, /* not used, in another way, or the print fmt is not understood */
	PRINT_USE_SHOWN,   /* as a number, or as names of flags: the value can be read from the text
			    */
	PRINT_USE_HEX,	   /* the same, as a hexadecimal number */
	PRINT_USE_POINTER, /* in an argument of %p..., whatever the other uses */
};

/* text: from "print fmt:" on, after an optional newline. */
enum print_use print_format_use(const char *text, struct span field);
