/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "exported.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "formats/formats.h"
#include "memory_file.h"

void exported_deinit(struct exported *e)
{
	export_result_deinit(&e->result);
	error_deinit(&e->err);
	buf_deinit(&e->file);
}

void try_export(struct exported *e, int stream_fd)
{
	_cleanup_close_ int out = memory_file("", 0);

	e->code = export_stream(stream_fd, out, &e->options, &e->result, &e->err);
	memory_file_read(out, &e->file);
	assert_true(e->code <= 0);
	assert_int_equal(e->code < 0, e->err.message != NULL);
}

void export_whole(struct exported *e, int stream_fd)
{
	try_export(e, stream_fd);
	if (e->code < 0)
		fail_msg("%s: %s", e->options.format, e->err.message);
}

const char *text_body(const char *text)
{
	while (*text == '#') {
		text = strchr(text, '\n');
		assert_non_null(text);
		text++;
	}
	return text;
}
