/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Segments of one file become files of their own. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/io.h"
#include "export/export.h"
#include "export/mend.h"
#include "formats/formats.h"
#include "output/part.h"
#include "output/sequel.h"
#include "own_folder.h"

#define FIRST "{\"systemTraceEvents\":\"# a\\nfirst\\n\"}\n"
#define SECOND "{\"systemTraceEvents\":\"# a\\nsecond\\n\"}\n"
#define THIRD "{\"systemTraceEvents\":\"# a\\nthird\\n\"}\n"

static int open_new(const char *path, const char *text)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	return fd;
}

static void assert_content(const char *path, const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	assert_int_equal(read_file_at(AT_FDCWD, path, 1000, &b), 0);
	assert_string_equal(buf_string(&b), text);
}

static const struct export_format *json(void)
{
	return export_format_find("json", NULL);
}

static void each_segment_gets_a_file(void **state _unused_)
{
	uint64_t list[] = { strlen(FIRST), strlen(FIRST SECOND) };
	const struct segment_ends ends = { list, 2, 0 };
	_cleanup_(sequels_deinit) struct sequels s = { 0 };
	_cleanup_close_ int fd = open_new("out.json", FIRST SECOND THIRD);
	_cleanup_buf_ struct buf text = BUF_INIT;

	/* A file of somebody else. */
	close(open_new("out.0003.json", "old"));
	assert_int_equal(sequels_move(&s, fd, "out.json", json(), &ends, false, NULL), 0);
	assert_int_equal(s.count, 2);
	assert_content("out.json", FIRST);
	assert_content("out.0002.json", SECOND);
	assert_content("out.0003.json", "old");
	assert_content("out.0004.json", THIRD);
	sequels_put(&s, &text);
	assert_string_equal(buf_string(&text), "out.0002.json to out.0004.json");
	assert_int_equal(own_folder_count(), 4);
}

static void a_failure_changes_nothing(void **state _unused_)
{
	uint64_t list[] = { strlen(FIRST), strlen(FIRST SECOND) }, beyond[] = { 5, 1000 };
	uint64_t disorder[] = { 9, 9 };
	const struct segment_ends ends = { list, 2, 0 }, wrong = { beyond, 2, 0 };
	const struct segment_ends unsorted = { disorder, 2, 0 };
	_cleanup_(sequels_deinit) struct sequels s = { 0 };
	_cleanup_close_ int fd = open_new("out.json", FIRST SECOND THIRD);
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(sequels_move(&s, fd, "none/out.json", json(), &ends, false, &err),
			 -ENOENT);
	assert_non_null(err.message);
	assert_int_equal(sequels_move(&s, fd, "out.json", json(), &wrong, false, NULL), -EIO);
	assert_int_equal(sequels_move(&s, fd, "out.json", json(), &unsorted, false, NULL), -EPROTO);
	assert_int_equal(s.count, 0);
	assert_content("out.json", FIRST SECOND THIRD);
	assert_int_equal(own_folder_count(), 1);
}

static void segments_are_found_again(void **state _unused_)
{
	static const char *const kinds[][2] = {
		{ "json", "}\n{\"systemTraceEvents\":\"" },
		{ "json", "}\n{\"traceEvents\":[\n{\"name\":\"process_name\",\"ph\":\"M\",\"cat\":"
			  "\"__metadata\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"kernel (idle, "
			  "irqs)\"}}" },
		{ "html", "</html>\n<!-- SPDX" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct export_format *format = export_format_find(kinds[i][0], NULL);
		const char *border = kinds[i][1];
		size_t head = (size_t)(strchr(border, '\n') - border) + 1;

		/* At each place around the limit of what is read at one time. */
		for (size_t at = MEND_PIECE - 200; at < MEND_PIECE + 3; at++) {
			_cleanup_(segment_ends_deinit) struct segment_ends ends = { 0 };
			_cleanup_close_ int fd = open_new("out", "");
			size_t len = strlen(border);

			assert_int_equal(pwrite(fd, border, len, (off_t)at), len);
			assert_int_equal(pwrite(fd, border, len, 2 * MEND_PIECE + 7), len);
			assert_int_equal(segment_ends_find(&ends, fd, format, 1), 0);
			assert_int_equal(ends.count, 2);
			assert_int_equal(ends.ends[0], at + head);
			assert_int_equal(ends.ends[1], 2 * MEND_PIECE + 7 + head);
		}
	}
}

/* A killed recording, whose first segment is as long as they become. */
static void left_segments_are_recovered(void **state _unused_)
{
	static const char end[] =
		"\\n\"}\n" SECOND "{\"systemTraceEvents\":\"# a\\nthird\\nhalf of";
	const off_t size = (off_t)EXPORT_JSON_MAX / 16 * 15;
	_cleanup_buf_ struct buf name = BUF_INIT;
	struct stat st;
	int fd = open_new("out.json.part", "{\"systemTraceEvents\":\"# a\\nfirst\\n");

	assert_int_equal(pwrite(fd, end, strlen(end), size), strlen(end));
	close(fd);
	assert_int_equal(part_recover("out.json", json(), &name), 1);
	assert_string_equal(buf_string(&name), "out.partial.json and out.partial.0002.json to "
					       "out.partial.0003.json");
	assert_int_equal(stat("out.partial.json", &st), 0);
	assert_int_equal(st.st_size, size + 5);
	assert_content("out.partial.0002.json", SECOND);
	assert_content("out.partial.0003.json",
		       "{\"systemTraceEvents\":\"# a\\nthird\\n\",\n\"traceEvents\":[]}\n");
	assert_int_equal(own_folder_count(), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_segment_gets_a_file, own_folder_setup,
						own_folder_teardown),
		cmocka_unit_test_setup_teardown(a_failure_changes_nothing, own_folder_setup,
						own_folder_teardown),
		cmocka_unit_test_setup_teardown(segments_are_found_again, own_folder_setup,
						own_folder_teardown),
		cmocka_unit_test_setup_teardown(left_segments_are_recovered, own_folder_setup,
						own_folder_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
