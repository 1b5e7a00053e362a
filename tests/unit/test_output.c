/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/output.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/io.h"
#include "export/segment.h"
#include "memory_file.h"

/* Lines, until there are that many bytes. */
static void put_lines(struct buf *b, size_t len)
{
	for (unsigned i = 0; b->len < len; i++)
		buf_printf(b, "line %u\n", i);
}

static void assert_holds(int fd, const struct buf *want)
{
	_cleanup_buf_ struct buf got = BUF_INIT;

	memory_file_read(fd, &got);
	assert_int_equal(got.len, want->len);
	assert_memory_equal(got.data, want->data, want->len);
}

static void all_that_is_wanted_is_in_the_file(void **state _unused_)
{
	_cleanup_buf_ struct buf want = BUF_INIT, taken = BUF_INIT;
	_cleanup_close_ int fd = memory_file("", 0);
	struct output out;

	put_lines(&want, 1000000);
	assert_int_equal(output_init(&out, fd, false), 0);
	buf_append(&out.buf, want.data, 100);
	assert_int_equal(output_settle(&out), 0);
	assert_int_equal(out.buf.len, 100);
	buf_append(&taken, want.data + 100, 400000);
	assert_int_equal(output_take(&out, &taken), 0);
	assert_int_equal(taken.len, 0);
	assert_int_equal(out.bytes, 400100);
	/* Whole blocks; after a sync, all bytes. */
	assert_in_range(lseek(fd, 0, SEEK_END), 1, 400099);
	assert_int_equal(output_sync(&out), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 400100);
	buf_append(&out.buf, want.data + 400100, 300000);
	assert_int_equal(output_settle(&out), 0);
	assert_int_equal(out.buf.len, 0);
	assert_int_equal(output_flush(&out, false), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 700100);
	buf_append(&out.buf, want.data + 700100, want.len - 700100);
	assert_int_equal(output_flush(&out, true), 0);
	assert_int_equal(out.bytes, want.len);
	assert_int_equal(out.raw_bytes, want.len);
	output_deinit(&out);
	assert_holds(fd, &want);
}

static void compressed_output_can_be_read(void **state _unused_)
{
	_cleanup_buf_ struct buf want = BUF_INIT, got = BUF_INIT;
	_cleanup_close_ int fd = memory_file("", 0);
	struct output out;
	gzFile file;
	char *to;

	put_lines(&want, 3000000);
	assert_int_equal(output_init(&out, fd, true), 0);
	for (size_t at = 0; at < want.len; at += 77777) {
		buf_append(&out.buf, want.data + at, MIN(want.len - at, (size_t)77777));
		assert_int_equal(at % 5 ? output_settle(&out) : output_sync(&out), 0);
	}
	assert_int_equal(output_flush(&out, true), 0);
	assert_int_equal(out.raw_bytes, want.len);
	assert_int_equal(lseek(fd, 0, SEEK_END), out.bytes);
	assert_true(out.bytes < want.len / 2);
	output_deinit(&out);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	file = gzdopen(dup(fd), "r");
	assert_non_null(file);
	to = buf_reserve(&got, want.len + 1);
	assert_non_null(to);
	assert_int_equal(gzread(file, to, (unsigned)want.len + 1), want.len);
	assert_int_equal(gzclose(file), Z_OK);
	assert_memory_equal(to, want.data, want.len);
}

static void an_error_is_kept(void **state _unused_)
{
	struct output out;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	assert_int_equal(output_init(&out, ends[1], false), 0);
	buf_puts(&out.buf, "text");
	assert_int_equal(output_flush(&out, false), -EPIPE);
	buf_puts(&out.buf, "more");
	assert_int_equal(output_flush(&out, true), -EPIPE);
	assert_int_equal(out.bytes, 0);
	output_deinit(&out);
	close(ends[1]);
}

static void expect_frame(int fd, enum segment_frame_kind kind, const char *data)
{
	struct segment_frame head;
	char got[64];

	assert_int_equal(read_full(fd, &head, sizeof(head)), sizeof(head));
	assert_int_equal(head.kind, kind);
	assert_int_equal(head.len, strlen(data));
	assert_int_equal(read_full(fd, got, head.len), head.len);
	assert_memory_equal(got, data, head.len);
}

static void begin_framed(struct output *out, int fd)
{
	assert_int_equal(output_init(out, fd, false), 0);
	out->framed = true;
	buf_puts(&out->buf, "text");
}

static void waiting_for_files_gets_an_answer(void **state _unused_)
{
	struct output out;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	begin_framed(&out, ends[1]);
	assert_int_equal(output_cut(&out, false), 0);
	expect_frame(ends[0], SEGMENT_DATA, "text");
	expect_frame(ends[0], SEGMENT_END, "");
	buf_puts(&out.buf, "most");
	assert_int_equal(write_full(ends[0], "", 1), 0);
	assert_int_equal(output_sync(&out), 0);
	expect_frame(ends[0], SEGMENT_DATA, "most");
	expect_frame(ends[0], SEGMENT_SYNC, "");
	buf_puts(&out.buf, "more");
	assert_int_equal(write_full(ends[0], "", 1), 0);
	assert_int_equal(output_cut(&out, true), 0);
	expect_frame(ends[0], SEGMENT_DATA, "more");
	expect_frame(ends[0], SEGMENT_LAST, "");
	output_deinit(&out);
	close(ends[0]);
	close(ends[1]);
}

static void a_reader_that_leaves_is_an_error(void **state _unused_)
{
	struct output out;

	/* The reader closes before the frame, or after it with or without unread data. */
	for (int how = 0; how < 3; how++) {
		int ends[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		begin_framed(&out, ends[1]);
		if (how == 1)
			assert_int_equal(output_flush(&out, false), 0);
		if (how < 2)
			close(ends[0]);
		else
			shutdown(ends[0], SHUT_WR);
		assert_int_equal(how ? output_cut(&out, true) : output_sync(&out), -EPIPE);
		assert_int_equal(output_flush(&out, true), -EPIPE);
		output_deinit(&out);
		if (how == 2)
			close(ends[0]);
		close(ends[1]);
	}
}

static void a_pipe_does_not_answer(void **state _unused_)
{
	struct output out;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	begin_framed(&out, ends[1]);
	assert_int_equal(output_cut(&out, true), 0);
	expect_frame(ends[0], SEGMENT_DATA, "text");
	expect_frame(ends[0], SEGMENT_LAST, "");
	output_deinit(&out);
	close(ends[0]);
	close(ends[1]);
}

/* Files of 1000 ns of a recording with an event every 10 ns, from 1000 ns to its end. */
static unsigned files_until(uint64_t end, bool is_known)
{
	static const struct output out;
	struct segment s = { .limit = { .ns = 1000 }, .end_ts = is_known ? end : 0 };
	unsigned count = 1;

	segment_begin(&s, &out);
	for (uint64_t ts = 1000; ts <= end; ts += 10) {
		if (!segment_is_full(&s, &out, NULL, ts))
			continue;
		count++;
		segment_begin(&s, &out);
		assert_false(segment_is_full(&s, &out, NULL, ts));
	}
	return count;
}

static void a_short_rest_stays_in_its_file(void **state _unused_)
{
	static const struct {
		uint64_t end;
		unsigned known, unknown;
	} cases[] = {
		{ 1990, 1, 1 }, { 2000, 1, 2 }, { 2090, 1, 2 }, { 2110, 2, 2 },
		{ 2500, 2, 2 }, { 3090, 2, 3 }, { 3110, 3, 3 }, { 4090, 3, 4 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(files_until(cases[i].end, true), cases[i].known);
		assert_int_equal(files_until(cases[i].end, false), cases[i].unknown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_short_rest_stays_in_its_file),
		cmocka_unit_test(all_that_is_wanted_is_in_the_file),
		cmocka_unit_test(compressed_output_can_be_read),
		cmocka_unit_test(an_error_is_kept),
		cmocka_unit_test(waiting_for_files_gets_an_answer),
		cmocka_unit_test(a_reader_that_leaves_is_an_error),
		cmocka_unit_test(a_pipe_does_not_answer),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
