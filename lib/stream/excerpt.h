/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a recorder writes as KALLSYMS_EXCERPT, known again where it is the text of kallsyms. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whose address every mark of trace_marker has: _THIS_IP_ in kernel/trace/trace.c. */
#define EXCERPT_NAME " tracing_mark_write\n"

/* The line of the function that writes marks, and one more, which names nothing. */
static inline bool is_excerpt(const char *text, size_t len)
{
	const size_t name_len = sizeof(EXCERPT_NAME) - 1;
	const char *end = len ? memchr(text, '\n', len) : NULL;
	size_t first = end ? (size_t)(end + 1 - text) : 0;

	return first > name_len && !memcmp(text + first - name_len, EXCERPT_NAME, name_len) &&
	       memchr(text + first, '\n', len - first) == text + len - 1;
}
