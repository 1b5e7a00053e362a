/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <string.h>

/*
 * Counts part in text. strstr() under a sanitizer scans everything behind a match: megabytes for
 * each of thousands of matches.
 */
static inline size_t occurrences(const char *text, const char *part)
{
	size_t n = 0, len = strlen(part);

	for (const char *p = text; *p; p++)
		n += *p == *part && !strncmp(p, part, len);
	return n;
}
