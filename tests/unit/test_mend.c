/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Truncated files become whole; files of another kind stay as they are. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "export/mend.h"
#include "formats/formats.h"
#include "formats/html/html.h"
#include "formats/json/mend.h"
#include "memory_file.h"

static void assert_mended(const char *format, const void *before, size_t len, const void *after,
			  size_t after_len)
{
	_cleanup_close_ int fd = memory_file(before, len);
	_cleanup_free_ char *is = calloc(1, after_len + 1);
	struct stat st;

	assert_int_equal(mend_file(export_format_find(format, NULL), fd, NULL), after_len > 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, after_len);
	assert_int_equal(pread_full(fd, is, after_len, 0), after_len);
	assert_memory_equal(is, after, after_len);
}

/* Trace Viewer looks for the text only beside traceEvents. */
#define ALONE "\",\n\"traceEvents\":[]}\n"

static void a_json_is_closed(void **state _unused_)
{
	static const struct {
		const char *cut, *whole;
	} cases[] = {
		{ "{\"systemTraceEvents\":\"# a\\nb \\\"c\\\"\\nd",
		  "{\"systemTraceEvents\":\"# a\\nb \\\"c\\\"\\n" ALONE },
		{ "{\"systemTraceEvents\":\"a\\nb\\", "{\"systemTraceEvents\":\"a\\n" ALONE },
		/* A backslash and an n do not end a line. */
		{ "{\"systemTraceEvents\":\"a\\nb\\\\n", "{\"systemTraceEvents\":\"a\\n" ALONE },
		{ "{\"systemTraceEvents\":\"a\\nb\\n\",\n\"traceEvents\":[\n{\"na",
		  "{\"systemTraceEvents\":\"a\\nb\\n" ALONE },
		{ "{\"systemTraceEvents\":\"a\\nb\\n\",\n\"traceEvents\":[\n{},\n{}]}\n",
		  "{\"systemTraceEvents\":\"a\\nb\\n\",\n\"traceEvents\":[\n{},\n{}]}\n" },
		{ "{\"systemTraceEvents\":\"a", "" },
		/* The head of the text alone. */
		{ "{\"systemTraceEvents\":\"# tracer: nop\\n#\\n", "" },
		{ "{\"sys", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_mended("json", cases[i].cut, strlen(cases[i].cut), cases[i].whole,
			      strlen(cases[i].whole));
}

/* Simulates a full disk: writing beyond the file's end fails, as it does beyond this limit. */
static int mend_without_room(int fd, const char *format, size_t size)
{
	struct rlimit old, none;
	int r;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	none = (struct rlimit){ .rlim_cur = size, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	r = mend_file(export_format_find(format, NULL), fd, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	return r;
}

#define EVENTS JSON_EVENTS_HEAD
#define BEHIND JSON_TEXT_BEHIND

/* The order of members in a function tracer's recording. */
static void a_json_with_events_first_is_closed(void **state _unused_)
{
	static const struct {
		const char *cut, *whole;
	} cases[] = {
		{ EVENTS ",\n{\"a\":1},\n{\"b\":2},\n{\"c", EVENTS ",\n{\"a\":1},\n{\"b\":2}]}\n" },
		{ EVENTS ",\n{\"a\":1},\n", EVENTS ",\n{\"a\":1}]}\n" },
		{ EVENTS ",\n{\"a\":1}],\n\"syst", EVENTS ",\n{\"a\":1}]}\n" },
		{ EVENTS ",\n{\"a\":1}" BEHIND "# tra", EVENTS ",\n{\"a\":1}]}\n" },
		{ EVENTS ",\n{\"a\":1}" BEHIND "# a\\nb\\nc",
		  EVENTS ",\n{\"a\":1}" BEHIND "# a\\nb\\n\"}\n" },
		{ EVENTS ",\n{\"a\":1}" BEHIND "# a\\nb\\n\",\n\"samples\":[\n{",
		  EVENTS ",\n{\"a\":1}" BEHIND "# a\\nb\\n\"}\n" },
		{ EVENTS ",\n{\"a\":1}" BEHIND "# a\\nb\\n\",\n\"otherData\":{}}\n",
		  EVENTS ",\n{\"a\":1}" BEHIND "# a\\nb\\n\",\n\"otherData\":{}}\n" },
		{ EVENTS ",\n{", EVENTS "]}\n" },
		{ EVENTS, "" },
		{ "{\"traceEv", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_mended("json", cases[i].cut, strlen(cases[i].cut), cases[i].whole,
			      strlen(cases[i].whole));
}

/* The end of the array may lie in two of the pieces that are read. */
static void a_long_json_with_events_first_is_closed(void **state _unused_)
{
	static const char element[] = ",\n{\"name\":\"element\"}", end[] = BEHIND "# a\\nb\\nc";

	for (size_t more = 0; more < sizeof(end) + 4; more++) {
		_cleanup_buf_ struct buf cut = BUF_INIT, whole = BUF_INIT;

		buf_puts(&cut, EVENTS);
		while (cut.len < (512U << 10) - 40)
			buf_puts(&cut, element);
		buf_printf(&cut, ",\n{\"m\":\"%*s\"}",
			   (int)((512U << 10) - 40 - cut.len % 20 + more), "");
		buf_append(&whole, cut.data, cut.len);
		buf_puts(&cut, end);
		buf_puts(&whole, BEHIND "# a\\nb\\n\"}\n");
		assert_mended("json", cut.data, cut.len, whole.data, whole.len);
	}
}

static void assert_closed_without_room(const char *text, size_t len, size_t least,
				       const char *lines, const char *close)
{
	_cleanup_close_ int fd = memory_file(text, len);
	char is[128] = "";
	ssize_t n;

	assert_int_equal(mend_without_room(fd, "json", len), 1);
	n = pread_full(fd, is, sizeof(is) - 1, 0);
	assert_true(n >= (ssize_t)(least + strlen(close)) && n <= (ssize_t)len);
	/* Its whole lines, then the closing text. */
	n -= (ssize_t)strlen(close);
	assert_string_equal(is + n, close);
	assert_memory_equal(is, text, n);
	if (lines)
		assert_memory_equal(is + n - strlen(lines), lines, strlen(lines));
}

/* The file keeps as much as fits: it is whole, and no longer than it was. */
static void assert_events_closed_without_room(const char *text, size_t len)
{
	_cleanup_close_ int fd = memory_file(text, len);
	_cleanup_buf_ struct buf is = BUF_INIT;

	assert_int_equal(mend_without_room(fd, "json", len), 1);
	memory_file_read(fd, &is);
	assert_true(is.len <= len);
	assert_true(!strcmp(is.data + is.len - 3, "]}\n") ||
		    !strcmp(is.data + is.len - 3, "\"}\n"));
	assert_memory_equal(is.data, text, is.len - 3);
	assert_true(is.data[is.len - 4] == '}' || !strncmp(is.data + is.len - 5, "\\n", 2));
}

static void a_full_disk_has_room_to_close(void **state _unused_)
{
	static const char first[] = "{\"systemTraceEvents\":\"one\\n";
	static const char text[] = "{\"systemTraceEvents\":\"one\\ntwo \\\"2\\\"\\nthree\\n\","
				   "\n\"traceEvents\":[\n{\"name\":1}";
	static const char array[] = "[\n{\"a\":1},\n{\"b\":2}\n";
	static const char events_one[] = EVENTS ",\n{\"a\":1},\n{\"b";
	static const char events[] = EVENTS ",\n{\"a\":1},\n{\"b\":2},\n{\"c\":3}" BEHIND
					    "one\\ntwo\\n\",\n\"otherData\":{";

	/* Every length that leaves room behind the first line. */
	for (size_t len = sizeof(first) - 1 + strlen("\"}\n"); len < sizeof(text); len++)
		assert_closed_without_room(text, len, sizeof(first) - 1, "\\n",
					   len < sizeof(first) - 1 + strlen(ALONE) ? "\"}\n"
										   : ALONE);
	for (size_t len = sizeof(events_one) - 1; len < sizeof(events); len++)
		assert_events_closed_without_room(events, len);
	assert_closed_without_room(array, sizeof(array) - 1, sizeof(array) - 2, "{\"b\":2}", "]");
}

#define PAGE "<!DOCTYPE html>\n<!-- " HTML_MAKER " -->\n" HTML_TEXT_BEGIN

static void a_page_is_ended(void **state _unused_)
{
	static const char end[] = "  </script>\n</body>\n</html>\n";
	static const char *const cuts[] = {
		PAGE "# a\n",
		PAGE "# a\nb\n",
		PAGE "# a\n  </script>\n  <script>\n{},\n",
		PAGE "# a\nb\n" HTML_TEXT_NEXT,
		PAGE "# a\n" HTML_BLOCK_END HTML_MORE_BEGIN "{},\n" HTML_MORE_NEXT "{},\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
		_cleanup_buf_ struct buf cut = BUF_INIT, whole = BUF_INIT;

		buf_puts(&cut, cuts[i]);
		buf_puts(&whole, cuts[i]);
		buf_puts(&whole, end);
		assert_mended("html", cut.data, cut.len, whole.data, whole.len);
		buf_puts(&cut, "{\"no end");
		assert_mended("html", cut.data, cut.len, whole.data, whole.len);
		/* A whole page does not change. */
		assert_mended("html", whole.data, whole.len, whole.data, whole.len);
	}
	assert_mended("html", "<!DOCTYPE", 9, "", 0);

	assert_mended("html", PAGE, strlen(PAGE), "", 0);
	assert_mended("html", PAGE "half a li", strlen(PAGE "half a li"), "", 0);
}

static void a_full_disk_has_room_to_end_a_page(void **state _unused_)
{
	static const char lines[] =
		PAGE "# a\nfirst line\nsecond line, and more\nthird line\nno end";
	static const char whole[] = PAGE "# a\nfirst line\n" HTML_END;
	_cleanup_close_ int fd = memory_file(lines, strlen(lines));
	char is[sizeof(lines) + 1] = "";

	assert_int_equal(mend_without_room(fd, "html", strlen(lines)), 1);
	assert_int_equal(pread_full(fd, is, sizeof(is) - 1, 0), strlen(whole));
	assert_string_equal(is, whole);
}

static void packets_stay_whole(void **state _unused_)
{
	/* The first packet has an event: field 1. */
	static const char two[] = "\x0a\x03"
				  "\x0a\x01x"
				  "\x0a\x00"
				  "\x0a\x81\x00"
				  "x";
	static const char more[] = "\x0a\x05"
				   "abcd";

	for (size_t extra = 0; extra < sizeof(more); extra++) {
		char cut[32];

		memcpy(cut, two, sizeof(two) - 1);
		memcpy(cut + sizeof(two) - 1, more, extra);
		assert_mended("pftrace", cut, sizeof(two) - 1 + extra, two, sizeof(two) - 1);
	}
	/* A clock snapshot and a time stamp are no events; behind them, a track event is one. */
	assert_mended("pftrace", "\x0a\x05\x40\x01\x32\x01x", 7, "", 0);
	assert_mended("pftrace", "\x0a\x05\x40\x01\x5a\x01x", 7, "\x0a\x05\x40\x01\x5a\x01x", 7);
	/* Packets compressed with zstd hold events. */
	assert_mended("pftrace", "\x0a\x04\xaa\x08\x01x", 6, "\x0a\x04\xaa\x08\x01x", 6);
	assert_mended("pftrace", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, "", 0);
}

static void lines_stay_whole(void **state _unused_)
{
	_cleanup_free_ char *text = calloc(1, 1 << 20);

	assert_mended("txt", "a\nb\nc", 5, "a\nb\n", 4);
	assert_mended("txt", "a", 1, "", 0);
	assert_mended("txt", "# tracer: nop\n#\n", 16, "", 0);
	assert_mended("txt", "# tracer: nop\na-1\nb", 19, "# tracer: nop\na-1\n", 18);
	memset(text, 'x', 1 << 20);
	text[5] = '\n';
	assert_mended("txt", text, 1 << 20, text, 6);
	/* Compressed files stay as they are. */
	assert_mended("txt.gz", "\x1f\x8b", 2, "\x1f\x8b", 2);
	assert_mended("json.gz", "", 0, "", 0);
}

static void an_array_is_closed(void **state _unused_)
{
	static const struct {
		const char *cut, *whole;
	} cases[] = {
		{ "[\n{\"a\":1},\n{\"b\":2},\n{\"c", "[\n{\"a\":1},\n{\"b\":2}]\n" },
		{ "[\n{\"a\":1},\n{\"b\":2}]\n", "[\n{\"a\":1},\n{\"b\":2}]\n" },
		{ "[\n{\"a", "" },
		{ "[", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_mended("json", cases[i].cut, strlen(cases[i].cut), cases[i].whole,
			      strlen(cases[i].whole));
}

static void other_files_stay(void **state _unused_)
{
	static const char *const files[][2] = {
		{ "json", "{\"name\":\"somebody's\\nown\"" },
		{ "json", "{\"traceEvents\":[\n{\"name\":\"somebody's own\"},\n{\"na" },
		{ "json", "PK\x03\x04 half a download" },
		{ "pftrace", "\x89PNG" },
		{ "html", "<!DOCTYPE html>\n<title>theirs" },
		{ "html", "<!DOCTYPE html>\n" HTML_TEXT_BEGIN "# tra" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		size_t len = strlen(files[i][1]);
		_cleanup_close_ int fd = memory_file(files[i][1], len);
		char is[128];

		assert_int_equal(mend_file(export_format_find(files[i][0], NULL), fd, NULL),
				 -EBADMSG);
		assert_int_equal(pread_full(fd, is, sizeof(is), 0), len);
		assert_memory_equal(is, files[i][1], len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_json_is_closed),
		cmocka_unit_test(a_json_with_events_first_is_closed),
		cmocka_unit_test(a_long_json_with_events_first_is_closed),
		cmocka_unit_test(an_array_is_closed),
		cmocka_unit_test(packets_stay_whole),
		cmocka_unit_test(lines_stay_whole),
		cmocka_unit_test(other_files_stay),
		cmocka_unit_test(a_full_disk_has_room_to_close),
		cmocka_unit_test(a_page_is_ended),
		cmocka_unit_test(a_full_disk_has_room_to_end_a_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
