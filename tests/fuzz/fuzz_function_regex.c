/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A regular expression and, after a newline, a name of a function. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/capture/tracefs/function_regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = malloc(size + 1);
	struct function_regex re;
	size_t len;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	len = strcspn(text, "\n");
	if (function_regex_compile(&re, text, len, NULL) < 0)
		return 0;
	/* An expression that matches the empty text matches any name. */
	if (!function_regex_matches(&re, text + len) && function_regex_matches(&re, "") && re.empty)
		abort();
	return 0;
}
