/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <zlib.h>

#include "exported.h"
#include "memory_file.h"
#include "print/program.h"

void fixture_read_gz(const char *path, struct buf *out)
{
	gzFile f = gzopen(path, "rb");
	int n;

	assert_non_null(f);
	do {
		char *p = buf_reserve(out, 1 << 16);

		assert_non_null(p);
		n = gzread(f, p, 1 << 16);
		assert_true(n >= 0);
		out->len += (size_t)n;
	} while (n > 0);
	gzclose(f);
	assert_non_null(buf_string(out));
}

void fixture_each_format(const char *kernel, fixture_format_t each, void *userdata)
{
	_cleanup_buf_ struct buf formats = BUF_INIT;
	char path[512], *text;

	snprintf(path, sizeof(path), TEST_DATA "/%s/formats.txt.gz", kernel);
	fixture_read_gz(path, &formats);
	text = formats.data;
	assert_memory_equal(text, "## ", 3);
	while (text) {
		char *line = strchr(text, '\n'), *next = strstr(text + 3, "\n## ");
		char system[64];

		snprintf(system, sizeof(system), "%.*s", (int)(line - text - 3), text + 3);
		each(userdata, system, line + 1, next ? (size_t)(next - line) : strlen(line + 1));
		text = next ? next + 1 : NULL;
	}
}

void fixture_export(const char *path, const struct export_options *options, struct buf *out)
{
	_cleanup_exported_ struct exported e = { .options = *options };
	_cleanup_buf_ struct buf stream = BUF_INIT;
	_cleanup_close_ int in = -EBADF;

	fixture_read_gz(path, &stream);
	in = memory_file(stream.data, stream.len);
	try_export(&e, in);
	if (e.code < 0)
		fail_msg("%s: %s", path, e.err.message);
	assert_false(e.result.incomplete);
	assert_int_equal(e.result.lost, 0);
	for (size_t i = 0; i < e.result.fallback_count; i++)
		print_message("%s: fallback for %s: %s\n", path, e.result.fallbacks[i].event,
			      e.result.fallbacks[i].why);
	buf_deinit(out);
	*out = e.file;
	e.file = BUF_INIT;
}

bool fixture_prints_unknown(const struct event *ev)
{
	for (size_t i = 0; ev->program && i < ev->program->count; i++)
		if (ev->program->ops[i].code == OP_UNKNOWN)
			return true;
	return false;
}
