/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports become rows and are the same again; rows that are none are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/io.h"
#include "fleet/rows.h"

#define SIZE_MOST (1U << 20)

/* A filter may be long. */
#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789"

static const char report[] =
	"{\"format\":\"traced-report\",\"version\":1,\"clock\":\"boot\",\"reports\":[\n"
	"{\"name\":\"sched\",\"by\":null,\"sort\":\"a\",\"columns\":[{\"name\":\"task\"},{\"name\":"
	"\"rows\",\"of\":[]}],\"rows\":[\n"
	"{\"task\":\"a\\\"}],{[\\\\\",\"delay\":{\"buckets\":[[1,2],[3,4]]}},\n"
	"{\"task\":\"b\",\"delay\":{\"buckets\":[]}}],\"totals\":{\"n\":1},\"notes\":[\"x\",\"y\"]}"
	",\n"
	"{\"name\":\"hist a:b by c if d ~ \\\"}],{[" LONG "\\\"\",\"columns\":[],\"rows\":[\n"
	"{\"c\":1}],\"notes\":[]},\n"
	"{\"name\":\"irq\",\"by\":null,\"columns\":[],\"rows\":[],\"notes\":[]}],\"first_ns\":1,"
	"\"events\":2,\"origin\":{\"board\":\"door-1\",\"groups\":[\"x\"]}}\n";
static const char lines[] =
	"{\"format\":\"traced-report\",\"version\":1,\"clock\":\"boot\"}\n"
	"{\"table\":\"sched\",\"by\":null,\"sort\":\"a\",\"columns\":[{\"name\":\"task\"},{"
	"\"name\":"
	"\"rows\",\"of\":[]}]}\n"
	"{\"report\":\"sched\",\"task\":\"a\\\"}],{[\\\\\",\"delay\":{\"buckets\":[[1,2],[3,4]]}}\n"
	"{\"report\":\"sched\",\"task\":\"b\",\"delay\":{\"buckets\":[]}}\n"
	"{\"end\":\"sched\",\"totals\":{\"n\":1},\"notes\":[\"x\",\"y\"]}\n"
	"{\"table\":\"hist a:b by c if d ~ \\\"}],{[" LONG "\\\"\",\"columns\":[]}\n"
	"{\"report\":\"hist a:b by c if d ~ \\\"}],{[" LONG "\\\"\",\"c\":1}\n"
	"{\"end\":\"hist a:b by c if d ~ \\\"}],{[" LONG "\\\"\",\"notes\":[]}\n"
	"{\"table\":\"irq\",\"by\":null,\"columns\":[]}\n"
	"{\"end\":\"irq\",\"notes\":[]}\n"
	"{\"first_ns\":1,\"events\":2,\"origin\":{\"board\":\"door-1\",\"groups\":[\"x\"]}}\n";

static int file_of(const void *data, size_t len)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_int_equal(write_full(fd, data, len), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static size_t content_of(int fd, char *ret, size_t max)
{
	ssize_t n = pread_full(fd, ret, max - 1, 0);

	assert_true(n >= 0);
	ret[n] = '\0';
	return (size_t)n;
}

static int packed(const char *text, int to)
{
	_cleanup_close_ int from = file_of(text, strlen(text));

	return rows_pack(from, to, NULL);
}

/* Rows as somebody else may have compressed them. */
static int unpacked(const char *text, size_t cut, uint64_t max, uint64_t *ret, int to)
{
	static char bytes[1 << 16];
	size_t len = ZSTD_compress(bytes, sizeof(bytes), text, strlen(text), 3);
	_cleanup_close_ int from = -EBADF;

	assert_false(ZSTD_isError(len));
	from = file_of(bytes, len - cut);
	return rows_unpack(from, len - cut, to, max, ret, NULL);
}

static void reports_become_lines(void **state _unused_)
{
	_cleanup_close_ int to = memfd_create("rows", MFD_CLOEXEC);
	_cleanup_close_ int back = memfd_create("back", MFD_CLOEXEC);
	char bytes[4096], text[4096];
	uint64_t size;
	size_t len;

	assert_int_equal(packed(report, to), 0);
	len = content_of(to, bytes, sizeof(bytes));
	assert_int_equal(ZSTD_findFrameCompressedSize(bytes, len), len);
	{
		ZSTD_DCtx *zstd = ZSTD_createDCtx();
		size_t n = ZSTD_decompressDCtx(zstd, text, sizeof(text) - 1, bytes, len);

		assert_false(ZSTD_isError(n));
		text[n] = '\0';
		ZSTD_freeDCtx(zstd);
	}
	assert_string_equal(text, lines);
	lseek(to, 0, SEEK_SET);
	assert_int_equal(rows_unpack(to, len, back, SIZE_MOST, &size, NULL), 0);
	assert_int_equal(content_of(back, text, sizeof(text)), size);
	/* Only line breaks may differ. */
	for (const char *a = report, *b = text; *a || *b; a++, b++) {
		a += *a == '\n';
		b += *b == '\n';
		assert_int_equal(*a, *b);
		if (!*a)
			break;
	}
}

static void what_is_no_report_is_not_packed(void **state _unused_)
{
	_cleanup_close_ int to = memfd_create("rows", MFD_CLOEXEC);
	_cleanup_buf_ struct buf text = BUF_INIT;

	/* Cut anywhere. */
	for (size_t len = 0; len + 2 < sizeof(report); len++) {
		buf_clear(&text);
		buf_append(&text, report, len);
		assert_int_equal(packed(buf_string(&text), to), -EBADMSG);
	}
	assert_int_equal(packed("[]", to), -EBADMSG);
	assert_int_equal(packed("{}", to), -EBADMSG);
	buf_clear(&text);
	buf_puts(&text, report);
	buf_puts(&text, report);
	assert_int_equal(packed(buf_string(&text), to), -EBADMSG);
}

static void rows_that_are_none_are_refused(void **state _unused_)
{
	static const char *const wrong[] = {
		"",
		"{}\n",
		"{\"format\":1}\n",
		"{\"format\":1}\n{\"report\":\"sched\",\"a\":1}\n{\"first_ns\":1}\n",
		"{\"format\":1}\n{\"table\":\"a\",\"columns\":[]}\n{\"first_ns\":1}\n",
		"{\"format\":1}\n{\"table\":\"a\"}\n{\"report\":\"b\",\"x\":1}\n{\"end\":\"a\"}\n"
		"{\"first_ns\":1}\n",
		"{\"format\":1}\n{\"table\":\"a\"}\n{\"end\":\"b\"}\n{\"first_ns\":1}\n",
		"{\"format\":1}\n{\"first_ns\":1}\n{\"first_ns\":1}\n",
		"{\"format\":1}\n{\"first_ns\":1}",
		"{\"format\":1}\n\n{\"first_ns\":1}\n",
		"{\"format\":1}\n{\"table\":\"a\\\"}\n{\"end\":\"a\\\"}\n{\"first_ns\":1}\n",
		"{\"format\":1}\n{\"table\":\"\"}\n{\"end\":\"\"}\n{\"first_ns\":1}\n",
	};
	_cleanup_close_ int to = memfd_create("rows", MFD_CLOEXEC);
	uint64_t size;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(unpacked(wrong[i], 0, SIZE_MOST, &size, to), -EBADMSG);
	assert_int_equal(unpacked(lines, 0, SIZE_MOST, &size, to), 0);
	for (size_t cut = 1; cut < 200; cut++)
		assert_int_equal(unpacked(lines, cut, SIZE_MOST, &size, to), -EBADMSG);
	assert_int_equal(unpacked(lines, 0, 100, &size, to), -EBADMSG);
}

/* Few bytes that expand without an end: a line is bounded as the whole is. */
static void a_bomb_is_refused(void **state _unused_)
{
	_cleanup_close_ int to = memfd_create("rows", MFD_CLOEXEC);
	_cleanup_free_ char *text = malloc((16U << 20) + 1);
	uint64_t size;

	memset(text, 'x', 16U << 20);
	text[16U << 20] = '\0';
	assert_int_equal(unpacked(text, 0, SIZE_MOST, &size, to), -EBADMSG);
	memset(text, '\n', 16U << 20);
	assert_int_equal(unpacked(text, 0, SIZE_MOST, &size, to), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_become_lines),
		cmocka_unit_test(what_is_no_report_is_not_packed),
		cmocka_unit_test(rows_that_are_none_are_refused),
		cmocka_unit_test(a_bomb_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
