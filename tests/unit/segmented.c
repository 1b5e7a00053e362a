/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "segmented.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Finds the file of that name, or adds one. */
static struct segmented_file *name_file(struct segmented *s, const char *name, size_t len)
{
	char text[SEGMENT_NAME_MAX + 1] = "";
	size_t i = 0;

	assert_in_range(len, 1, SEGMENT_NAME_MAX);
	memcpy(text, name, len);
	while (i < s->count && strcmp(s->files[i].name, text))
		i++;
	assert_true(i < SEGMENTED_MAX);
	s->count = MAX(s->count, i + 1);
	memcpy(s->files[i].name, text, sizeof(text));
	return &s->files[i];
}

static void end_file(struct segmented *s)
{
	assert_true(s->count + 1 < SEGMENTED_MAX);
	assert_non_null(buf_string(&s->files[s->count++].data));
}

static void take_frames(struct segmented *s)
{
	const char *p = s->out.file.data, *end = p + s->out.file.len;
	struct segmented_file *named = NULL;
	struct segment_frame head;
	bool last = false;

	for (; p < end; p += head.len) {
		assert_true((size_t)(end - p) >= sizeof(head));
		memcpy(&head, p, sizeof(head));
		p += sizeof(head);
		assert_false(last);
		assert_in_range(head.len, 0, MIN(SEGMENT_FRAME_MAX, (uint32_t)(end - p)));
		last = head.kind == SEGMENT_LAST;
		if (head.kind == SEGMENT_DATA) {
			buf_append(named ? &named->data : &s->files[s->count].data, p, head.len);
		} else if (head.kind == SEGMENT_FILE) {
			named = name_file(s, p, head.len);
		} else {
			assert_true(last || head.kind == SEGMENT_END);
			assert_int_equal(head.len, 0);
			if (!named)
				end_file(s);
		}
	}
	assert_true(last || s->out.code < 0);
}

struct segmented *export_segments(int stream_fd, const struct export_options *options)
{
	struct segmented *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->out.options = *options;
	try_export(&s->out, stream_fd);
	take_frames(s);
	return s;
}

void segmented_freep(struct segmented **s)
{
	if (!*s)
		return;
	for (size_t i = 0; i < SEGMENTED_MAX; i++)
		buf_deinit(&(*s)->files[i].data);
	exported_deinit(&(*s)->out);
	free(*s);
}
