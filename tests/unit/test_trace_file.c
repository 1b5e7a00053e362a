/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of the Trace Event Format: what is read of them, and in which order. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/io.h"
#include "marks/trace_file.h"
#include "memory_file.h"

struct reading {
	struct trace_file file;
	struct error err;
	struct scratch scratch;
	int code;
};

static void reading_deinit(struct reading *r)
{
	trace_file_deinit(&r->file);
	error_deinit(&r->err);
}
#define _cleanup_reading_ _cleanup_(reading_deinit)

static void read_bytes(struct reading *r, const void *data, size_t len)
{
	_cleanup_close_ int fd = memory_file(data, len);

	*r = (struct reading){ .scratch.fd = -EBADF };
	r->code = trace_file_read(&r->file, fd, 0, &r->scratch, &r->err);
	assert_int_equal(r->code < 0, r->err.message != NULL);
}

static void read_text(struct reading *r, const char *text)
{
	read_bytes(r, text, strlen(text));
}

static void load_matrix(struct buf *out)
{
	*out = BUF_INIT;
	assert_int_equal(read_file_at(AT_FDCWD, TEST_DATA "/marks/phases.json", 1 << 20, out), 0);
}

#define EVENT "{\"name\":\"a\",\"ph\":\"i\",\"ts\":1.5,\"pid\":1,\"tid\":2}"

/* Files of events, whole or not, and other files. */
static void kinds_of_files_are_recognized(void **state _unused_)
{
	static const struct {
		const char *text;
		int code;
		uint64_t count, left_out;
		bool cut;
	} rows[] = {
		{ "[]", 0, 0, 0, false },
		{ "[" EVENT "," EVENT "]", 0, 2, 0, false },
		{ " [ " EVENT " , ", 0, 1, 0, false },
		{ "[", 0, 0, 0, false },
		{ "[" EVENT, 0, 1, 0, false },
		{ "[" EVENT ",{\"name\":\"b", -ENODATA, 1, 0, true },
		{ "{\"traceEvents\":[" EVENT "]}", 0, 1, 0, false },
		{ "{\"x\":{\"y\":[1,[]]},\"traceEvents\":[" EVENT "],\"z\":null}\n", 0, 1, 0,
		  false },
		{ "{\"traceEvents\":[" EVENT, -ENODATA, 1, 0, true },
		{ "{\"systemTraceEvents\":\"# tracer: nop\\n\",\"traceEvents\":[" EVENT "]}", 0, 1,
		  0, false },
		{ "", -ENODATA, 0, 0, true },
		/* Some programs begin a text with this byte order mark. */
		{ "\xef\xbb\xbf[" EVENT "]", 0, 1, 0, false },
		{ "\xef\xbb\xbf \n{\"traceEvents\":[" EVENT "]}", 0, 1, 0, false },
		{ "\xef\xbb", -ENODATA, 0, 0, true },
		{ "\xef\xbb[]", -EBADMSG, 0, 0, false },
		{ "[\xef\xbb\xbf]", -EBADMSG, 0, 0, false },
		{ "17", -EBADMSG, 0, 0, false },
		{ "hello", -EBADMSG, 0, 0, false },
		{ "[" EVENT "] x", -EBADMSG, 1, 0, false },
		{ "[" EVENT ",]", -EBADMSG, 1, 0, false },
		{ "[" EVENT EVENT "]", -EBADMSG, 1, 0, false },
		{ "[{\"ts\":NaN}]", -EBADMSG, 0, 0, false },
		{ "[{\"ts\":-Infinity}]", -EBADMSG, 0, 0, false },
		{ "[{\"ts\":01}]", -EBADMSG, 0, 0, false },
		{ "[{\"name\":\"\\x\"}]", -EBADMSG, 0, 0, false },
		{ "[{\"name\":\"\\ud83\"}]", -EBADMSG, 0, 0, false },
		{ "[{\"name\":\"\\ud83d\\ud83d\\ude00\\ud83d\\n\\ud83dx\"}]", 0, 0, 1, false },
		{ "[{'name':1}]", -EBADMSG, 0, 0, false },
		{ "[1,null,\"x\",[]," EVENT "]", 0, 1, 4, false },
		{ "[{}]", 0, 0, 1, false },
		{ "[{\"ph\":\"i\",\"ts\":1,\"pid\":1}]", 0, 0, 1, false },
		{ "[{\"name\":\"a\",\"ph\":\"i\",\"pid\":1}]", 0, 0, 1, false },
		{ "[{\"name\":\"a\",\"ph\":\"?\",\"ts\":1,\"pid\":1}]", 0, 0, 1, false },
		{ "[{\"name\":\"a\",\"ph\":\"i\",\"ts\":-1,\"pid\":1}]", 0, 0, 1, false },
		{ "[{\"name\":\"a\",\"ph\":\"i\",\"ts\":1e300,\"pid\":1}]", 0, 0, 1, false },
		{ "[{\"name\":\"a\",\"ph\":\"i\",\"ts\":99999999999999999999,\"pid\":1}]", 0, 0, 1,
		  false },
		{ "[{\"name\":\"a\",\"ph\":\"i\",\"ts\":1}]", 0, 0, 1, false },
		{ "[{\"name\":\"a\",\"ph\":\"X\",\"ts\":1,\"pid\":1}]", 0, 0, 1, false },
		{ "[{\"name\":\"a\",\"ph\":\"b\",\"ts\":1,\"pid\":1}]", 0, 0, 1, false },
		{ "[{\"name\":\"a\",\"ph\":\"i\",\"ts\":1,\"pid\":1,\"tid\":\"main\"}]", 0, 0, 1,
		  false },
		{ "[{\"name\":\"\",\"ph\":\"i\",\"ts\":1,\"pid\":1}]", 0, 1, 0, false },
		{ "[{\"name\":\"a\",\"ph\":\"i\",\"ts\":\"2\",\"pid\":\"1\",\"tid\":\"7\"}]", 0, 1,
		  0, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_reading_ struct reading r;

		read_text(&r, rows[i].text);
		if (r.code != rows[i].code || r.file.count != rows[i].count ||
		    r.file.left_out != rows[i].left_out || r.file.cut != rows[i].cut)
			fail_msg("row %zu: %s: %d %llu %llu %d: %s", i, rows[i].text, r.code,
				 (unsigned long long)r.file.count,
				 (unsigned long long)r.file.left_out, r.file.cut, r.err.message);
	}
}

/* Times keep their nanoseconds, however they are spelled. */
static void times_are_exact(void **state _unused_)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} rows[] = {
		{ "0", 0 },
		{ "1", 1000 },
		{ "1.5", 1500 },
		{ "1.001", 1001 },
		{ "1.0019", 1001 },
		{ "4441600000.125", 4441600000125 },
		{ "1795251257082801.493", 1795251257082801493 },
		{ "1e3", 1000000 },
		{ "2.5E2", 250000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_reading_ struct reading r;
		struct mark m;
		char text[128];

		snprintf(text, sizeof(text), "[{\"name\":\"a\",\"ph\":\"i\",\"pid\":1,\"ts\":%s}]",
			 rows[i].text);
		read_text(&r, text);
		assert_int_equal(r.code, 0);
		assert_int_equal(mark_sort_next(r.file.marks, &m, NULL), 1);
		assert_int_equal(m.ts, rows[i].ns);
		assert_int_equal(m.tid, 1);
	}
}

static void deep(struct buf *out, size_t depth, const char *open, const char *close)
{
	*out = BUF_INIT;
	buf_puts(out, "[{\"name\":\"a\",\"ph\":\"i\",\"ts\":1,\"pid\":1,\"args\":{\"x\":");
	for (size_t i = 0; i < depth; i++)
		buf_puts(out, open);
	for (size_t i = 0; i < depth; i++)
		buf_puts(out, close);
	buf_puts(out, "}}]");
}

/* Each is refused with its position, and with bounded memory; skipped parts may be long. */
static void too_much_is_refused(void **state _unused_)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	static const char begin[] = "[{\"name\":\"", key[] = "{\"systemTraceEvents\":\"";

	for (int i = 0; i < 3; i++) {
		_cleanup_buf_ struct buf nested;
		_cleanup_reading_ struct reading r;

		deep(&nested, i == 0 ? 50 : i == 1 ? 64 : 100000, "[", "]");
		read_bytes(&r, nested.data, nested.len);
		assert_int_equal(r.code, i == 0 ? 0 : -EFBIG);
		assert_int_equal(r.file.count, i == 0);
	}
	for (int i = 0; i < 2; i++) {
		_cleanup_reading_ struct reading r;

		buf_clear(&text);
		buf_puts(&text, i ? key : begin);
		assert_non_null(buf_reserve(&text, 4 << 20));
		memset(text.data + text.len, 'x', 4 << 20);
		text.len += 4 << 20;
		buf_puts(&text, i ? "\",\"traceEvents\":[]}" : "\"}]");
		read_bytes(&r, text.data, text.len);
		assert_int_equal(r.code, i ? 0 : -EFBIG);
		assert_int_equal(r.file.kernel_text, i);
	}
}

/* Truncated anywhere: whole events are kept, and nothing else happens. */
static void cut_anywhere(void **state _unused_)
{
	_cleanup_buf_ struct buf whole;
	uint64_t before = 0;

	load_matrix(&whole);
	for (size_t len = 0; len <= whole.len; len++) {
		_cleanup_reading_ struct reading r;

		read_bytes(&r, whole.data, len);
		/* Its last byte is a newline. */
		assert_int_equal(r.code, len + 1 < whole.len ? -ENODATA : 0);
		assert_int_equal(r.file.cut, len + 1 < whole.len);
		assert_true(r.file.count >= before);
		before = r.file.count;
	}
	assert_int_equal(before, 53);
}

static void pack(const struct buf *from, struct buf *out)
{
	z_stream z = { 0 };

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
	assert_non_null(buf_reserve(out, from->len + 1024));
	z.next_in = (unsigned char *)from->data;
	z.avail_in = (uInt)from->len;
	z.next_out = (unsigned char *)out->data + out->len;
	z.avail_out = (uInt)from->len + 1024;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	out->len += z.total_out;
	deflateEnd(&z);
}

static void gzip_is_read(void **state _unused_)
{
	_cleanup_buf_ struct buf whole, packed = BUF_INIT;
	struct buf half;
	size_t first;

	load_matrix(&whole);
	half = (struct buf){ .data = whole.data, .len = whole.len / 2 };
	pack(&half, &packed);
	first = packed.len;
	half = (struct buf){ .data = whole.data + half.len, .len = whole.len - half.len };
	pack(&half, &packed);
	for (size_t len = 2; len <= packed.len; len++) {
		_cleanup_reading_ struct reading r;

		read_bytes(&r, packed.data, len);
		assert_int_equal(r.file.cut, len < packed.len);
		/* If only its checksum is missing, the text is whole. */
		assert_true(r.code == 0 || (len < packed.len && r.code == -ENODATA));
		assert_true(len < packed.len || r.file.count == 53);
	}
	{
		_cleanup_reading_ struct reading r;

		packed.data[first / 2] ^= 0x55;
		read_bytes(&r, packed.data, packed.len);
		assert_true(r.code < 0);
	}
}

/* Sorting with runs in a file gives the same order as sorting in memory. */
static void runs_are_merged(void **state _unused_)
{
	_cleanup_close_ int fd = memory_file("", 0);
	_cleanup_(mark_sort_freep) struct mark_sort *small = NULL, *large = NULL, *none = NULL;
	struct scratch scratch = { .fd = fd }, nothing = { .fd = -EBADF };
	struct mark a, b;
	uint32_t seed = 7;
	int n = 0, r;

	assert_int_equal(mark_sort_new(&small, &scratch, 20000), 0);
	assert_int_equal(mark_sort_new(&large, &scratch, 0), 0);
	assert_int_equal(mark_sort_new(&none, &nothing, 20000), 0);
	for (int i = 0; i < 20000; i++) {
		struct mark m = { .phase = "BEXiMC"[i % 6], .pid = i };
		char name[32];

		seed = seed * 1664525 + 1013904223;
		m.ts = m.phase == 'M' ? 0 : seed >> 20;
		m.dur = seed >> 28;
		m.part[PART_NAME] =
			(struct text){ name, (uint32_t)snprintf(name, sizeof(name), "%d", i) };
		assert_int_equal(mark_sort_add(small, &m, NULL), 0);
		assert_int_equal(mark_sort_add(large, &m, NULL), 0);
		r = mark_sort_add(none, &m, NULL);
		assert_true(r == 0 || r == -EFBIG);
	}
	assert_int_equal(r, -EFBIG);
	assert_true(scratch.end > 2000000);
	assert_int_equal(mark_sort_finish(small, NULL), 0);
	assert_int_equal(mark_sort_finish(large, NULL), 0);
	while ((r = mark_sort_next(small, &a, NULL)) > 0) {
		assert_int_equal(mark_sort_next(large, &b, NULL), 1);
		assert_int_equal(a.ts, b.ts);
		assert_int_equal(a.pid, b.pid);
		assert_true(text_equal(a.part[PART_NAME], b.part[PART_NAME]));
		n++;
	}
	assert_int_equal(r, 0);
	assert_int_equal(mark_sort_next(large, &b, NULL), 0);
	assert_int_equal(mark_sort_next(small, &a, NULL), 0);
	assert_int_equal(n, 20000);
}

/* Another process may have the scratch file open and write to it. */
static void scratch_is_not_believed(void **state _unused_)
{
	for (size_t at = 0; at < 600; at += 3) {
		_cleanup_close_ int fd = memory_file("", 0);
		_cleanup_(mark_sort_freep) struct mark_sort *s = NULL;
		struct scratch scratch = { .fd = fd };
		struct mark m = { .phase = 'i' };
		int r;

		m.part[PART_NAME] = TEXT("name");
		assert_int_equal(mark_sort_new(&s, &scratch, 1), 0);
		for (int i = 0; i < 4; i++)
			assert_int_equal(mark_sort_add(s, &m, NULL), 0);
		assert_int_equal(pwrite(fd, "\xff\xff\xff", 3, (off_t)at), 3);
		if (mark_sort_finish(s, NULL) < 0)
			continue;
		for (int i = 0; i < 10 && (r = mark_sort_next(s, &m, NULL)) > 0; i++)
			assert_true(m.part[PART_NAME].len <= 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_of_files_are_recognized),
		cmocka_unit_test(times_are_exact),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(gzip_is_read),
		cmocka_unit_test(runs_are_merged),
		cmocka_unit_test(scratch_is_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
