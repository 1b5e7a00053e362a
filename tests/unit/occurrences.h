/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <string.h>

/*
 * How often part is in text. Not by strstr(): a sanitizer's looks at all that is behind a find, and
 * so at megabytes for each of thousands.
 */
static inline size_t occurrences(const char *text, const char *part)
{
	size_t n = 0, len = strlen(part);

	for (const char *p = text; *p; p++)
		n += *p == *part && !strncmp(p, part, len);
	return n;
}
