/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The form of a KALLSYMS_EXCERPT that a recorder writes, so that it is recognized in kallsyms text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Marks of trace_marker have this function's address: _THIS_IP_ in kernel/trace/trace.c. */
#define EXCERPT_NAME " tracing_mark_write\n"

/* True for the line of the function that writes marks and one more line, which ends its range. */
static inline bool is_excerpt(const char *text, size_t len)
{
	const size_t name_len = sizeof(EXCERPT_NAME) - 1;
	const char *end = len ? memchr(text, '\n', len) : NULL;
	size_t first = end ? (size_t)(end + 1 - text) : 0;

	return first > name_len && !memcmp(text + first - name_len, EXCERPT_NAME, name_len) &&
	       memchr(text + first, '\n', len - first) == text + len - 1;
}
