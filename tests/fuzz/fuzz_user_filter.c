/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A filter as users may write one, and an event's format file: the text before and after the first
 * NUL. Without a NUL the format is that of a usual event.
 */
#include "fuzz.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/capture/plan/user_filter.h"
#include "daemon/capture/tracefs/event_field.h"

static const char usual[] =
	"name: kmalloc\nID: 1\nformat:\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:size_t bytes_req;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:int node;\toffset:32;\tsize:4;\tsigned:1;\n"
	"\tfield:__data_loc char[] name;\toffset:36;\tsize:4;\tsigned:0;\n\n"
	"print fmt: \"%pS %p %zu %d %s\", (void *)REC->call_site, REC->ptr, REC->bytes_req, "
	"REC->node, __get_str(name)\n";

/*
 * An accepted filter, read in another way: outside of quotes each word that does not begin with a
 * digit is an open field. "CPUS{...}" is the only value with a word.
 */
static void check_words(const char *format, const char *filter)
{
	for (const char *p = filter; *p;) {
		size_t len = 0;

		if (*p == '"' || *p == '\'') {
			p = strchr(p + 1, *p);
			if (!p)
				abort();
			p++;
			continue;
		}
		if ((unsigned char)*p >= 0x80)
			abort();
		if (strncmp(p, "CPUS{", 5) == 0) {
			p = strchr(p, '}');
			if (!p)
				abort();
			continue;
		}
		while (isalnum((unsigned char)p[len]) || p[len] == '_')
			len++;
		if (len && !isdigit((unsigned char)*p) &&
		    event_field_judge(format, p, len) != EVENT_FIELD_OPEN)
			abort();
		p += len + !len;
	}
}

/* No pointer is open, and no field that the text prints by %p alone. */
static void check_fields(const char *format)
{
	const char *at = format, *name;
	size_t len;

	while ((len = event_field_next(&at, &name))) {
		const char *line = name;

		while (line > format && line[-1] != '\n')
			line--;
		if (memchr(line, '*', (size_t)(name - line)) &&
		    event_field_judge(format, name, len) == EVENT_FIELD_OPEN)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *filter = NULL, *given = NULL;
	const char *format = usual;
	size_t len;
	int r;

	if (size > 16 << 10)
		return 0;
	/* Blocks of their own, so that a sanitizer sees reads beyond them. */
	filter = strndup((const char *)data, size);
	if (!filter)
		return 0;
	len = strlen(filter);
	if (len < size) {
		given = strndup((const char *)data + len + 1, size - len - 1);
		if (!given)
			return 0;
		format = given;
		check_fields(format);
	}
	r = user_filter_check("kmem:kmalloc", format, filter, &err);
	if (r == 0)
		check_words(format, filter);
	else if ((r != -EPERM && r != -EINVAL) || !err.message || !strchr(err.message, '^') ||
		 !err.hint)
		abort();
	return 0;
}
