/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Streams as a trace.dat: what is written, read back. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "dat_text.h"
#include "fixture.h"
#include "formats/formats.h"
#include "formats/import.h"
#include "memory_file.h"

/*
 * Writes the stream as a .dat; returns what export_stream() returns. pages: as
 * export_options.pages_fd.
 */
static int to_dat(int stream, int pages, bool packed, int out, struct export_result *result,
		  struct error *err)
{
	const struct export_options o = {
		.format = "dat",
		.perfetto.compression = packed ? PERFETTO_ZSTD : PERFETTO_PLAIN,
		.pages_fd = pages,
	};

	return export_stream(stream, out, &o, result, err);
}

/* A stream and the .dat made of it must have the same text. */
static void check_round(int stream, int pages, bool packed)
{
	_cleanup_close_ int file = memory_file("", 0), again = memory_file("", 0);
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_buf_ struct buf should = BUF_INIT, is = BUF_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;

	if (to_dat(stream, pages, packed, file, &result, &err) < 0)
		fail_msg("to .dat: %s", err.message);
	assert_int_equal(lseek(file, 0, SEEK_CUR), (off_t)result.bytes);
	if (import_stream(file, again, &(struct import_options){ 0 }, &err) < 0)
		fail_msg("from .dat: %s", err.message);
	stream_text(stream, pages, &should);
	stream_text(again, file, &is);
	assert_string_equal(text_body(is.data), text_body(should.data));
}

static void check_both(int stream, int pages)
{
	check_round(stream, pages, false);
#if HAVE_ZSTD
	check_round(stream, pages, true);
#endif
}

/* Two CPUs: CPU 1 has no event 0; more pages than a block holds. */
static void test_written_machines(void **state _unused_)
{
	for (unsigned i = 0; i < 4; i++) {
		_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
		uint64_t ts = 1000000000;

		maker_init(&m, i & 1 ? 4 : 8, i & 2, 1024);
		maker_head(&m);
		maker_tasks(&m, 1, 0, (struct maker_task[]){ { .tid = 7, .comm = "seven" } }, 1);
		for (unsigned page = 0; page < 23; page++) {
			page_begin(&m, ts);
			event_number(&m, ts += 1000, 7, page);
			page_end(&m, page == 20 ? 77 : 0);
			if (page % 10 == 9)
				maker_flush(&m, 3, BUFFER_MAIN, 0);
		}
		maker_flush(&m, 3, BUFFER_MAIN, 0);
		page_begin(&m, ts);
		event_switch(&m, ts += 1000, 7, "seven", 1, 120, 8, "eight");
		page_flush(&m, UINT64_MAX, 1);
		maker_end(&m);
		check_both(m.fd, 0);
	}
}

#define MARK_LINE "0000000000001000 t tracing_mark_write\n"
#define PLACE_BEYOND 0x3000

/* A mark, and an event at PLACE_BEYOND. */
static void make_named(struct maker *m, const char *excerpt, const char *symbols)
{
	const uint64_t place = PLACE_BEYOND;

	maker_begin(m, 1024);
	maker_format(m, "test", "place", 300,
		     "\tfield:unsigned long at;\toffset:8;\tsize:8;\tsigned:0;\n",
		     "\"at %ps\", (void *)REC->at");
	if (excerpt)
		maker_excerpt(m, excerpt);
	if (symbols)
		maker_symbols(m, symbols);
	page_begin(m, 1000);
	event_print_mark(m, 2000, 7, "hello");
	maker_event(m, 3000, 300, 7, &place, sizeof(place));
	maker_finish(m);
}

/* Recordings in which only marks name a symbol; and one without further symbols. */
static void test_written_excerpt(void **state _unused_)
{
	static const struct {
		const char *excerpt, *symbols, *place;
	} cases[] = {
		{ MARK_LINE "0000000000002000 t next\n", NULL, "place: at 0x3000\n" },
		{ NULL, "0000000000000f00 t a\n" MARK_LINE, "place: at tracing_mark_write\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
		_cleanup_buf_ struct buf text = BUF_INIT;

		make_named(&m, cases[i].excerpt, cases[i].symbols);
		stream_text(m.fd, 0, &text);
		assert_non_null(strstr(buf_string(&text), ": tracing_mark_write: hello\n"));
		assert_non_null(strstr(text.data, cases[i].place));
		check_both(m.fd, 0);
	}
}

/* A stream made of a .dat has no uuid. */
static void check_perfetto(int stream, int pages)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_close_ int out = memory_file("", 0);

	assert_int_equal(
		export_stream(stream, out,
			      &(struct export_options){ .format = "pftrace", .pages_fd = pages },
			      &result, NULL),
		0);
	assert_int_equal(result.events, 2);
}

/* Excerpts that no recorder writes: symbols beyond them stay unknown. */
static void test_written_odd_excerpt(void **state _unused_)
{
	static const char *const excerpts[] = { MARK_LINE, "0000000000001000 t a\n" MARK_LINE,
						MARK_LINE "0000000000002000 t next",
						MARK_LINE "0000000000002000 t b\n"
							  "0000000000002800 t c\n" };

	for (size_t i = 0; i < ARRAY_SIZE(excerpts); i++) {
		_cleanup_close_ int file = memory_file("", 0), again = memory_file("", 0);
		_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
		_cleanup_export_result_ struct export_result result = { 0 };
		_cleanup_buf_ struct buf text = BUF_INIT;

		make_named(&m, excerpts[i], NULL);
		assert_int_equal(to_dat(m.fd, 0, false, file, &result, NULL), 0);
		assert_int_equal(import_stream(file, again, &(struct import_options){ 0 }, NULL),
				 0);
		stream_text(again, file, &text);
		assert_non_null(strstr(buf_string(&text), "place: at 0x3000\n"));
		check_perfetto(again, file);
	}
}

/* The symbols' chunk is intact, but its content does not expand. */
static void test_written_without_symbols(void **state _unused_)
{
	static char junk[] = "no frame of zstd";
	_cleanup_close_ int file = memory_file("", 0);
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
	_cleanup_export_result_ struct export_result result = { 0 };
	const struct chunk_header h = stream_chunk_header(
		CHUNK_KALLSYMS, CHUNK_ZSTD, 0, &(struct iovec){ junk, sizeof(junk) - 1 }, 1);
	struct stream_reader reader;
	struct chunk chunk;

	make_named(&m, NULL, junk);
	assert_int_equal(stream_reader_init(&reader, m.fd, NULL), 0);
	while (stream_reader_next(&reader, &chunk, NULL) > 0)
		if (chunk.type == CHUNK_KALLSYMS)
			assert_int_equal(pwrite(m.fd, &h, sizeof(h), (off_t)chunk.offset),
					 sizeof(h));
	assert_int_equal(to_dat(m.fd, 0, false, file, &result, NULL), 0);
	assert_true(result.incomplete);
	assert_int_equal(result.warning_count, 1);
	assert_non_null(
		strstr(result.warnings[0], "kernel symbols are left out: they are damaged"));
}

/* A sub-buffer that was read three times while the kernel filled it. */
static void test_written_once(void **state _unused_)
{
	for (unsigned missed = 0; missed < 3; missed++) {
		_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };

		maker_begin(&m, 1024);
		for (unsigned events_in = 1; events_in <= 3; events_in++) {
			page_begin(&m, 1000000000);
			for (unsigned k = 0; k < events_in; k++)
				event_number(&m, 1000001000 + k * 1000, 7, k);
			/* The loss was reported on the first read. */
			page_end(&m, events_in > 1 ? 0 : missed == 2 ? UINT64_MAX : missed * 9);
			if (events_in == 3) {
				page_begin(&m, 1000009000);
				event_number(&m, 1000009000, 7, 9);
				page_end(&m, 0);
			}
			maker_flush(&m, 0, BUFFER_MAIN, (events_in - 1) * 16);
		}
		maker_end(&m);
		check_both(m.fd, 0);
	}
}

/* A stream made of a .dat becomes a .dat again: instances, offsets of the clock. */
static void test_written_again(void **state _unused_)
{
	for (unsigned i = 0; i < 4; i++) {
		_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
		_cleanup_close_ int in = -EBADF, stream = memory_file("", 0);
		_cleanup_buf_ struct buf dat = BUF_INIT, tsc = BUF_INIT;

		maker_dat_pages(&m, 8, i & 1, 2);
		maker_u32(&m, &tsc, 3);
		maker_u32(&m, &tsc, 2);
		maker_u64(&m, &tsc, 0);
		const struct dat_option options[] = {
			{ 7, "-1000", 6 },
			{ 4, "local [x86-tsc]", 16 },
			{ 14, tsc.data, tsc.len },
			{ 5, "Linux example 5.4.0 x86_64", 27 },
		};

		make_dat(&(struct dat_maker){ .m = &m,
					      .version = i & 2 ? 6 : 7,
					      .options = options,
					      .option_count = ARRAY_SIZE(options),
					      .instances = 2 },
			 &dat);
		in = memory_file(dat.data, dat.len);
		assert_int_equal(import_stream(in, stream, &(struct import_options){ 0 }, NULL), 0);
		check_both(stream, in);
	}
}

static const char *const recorded[] = {
	"6.1.176/function",
	"6.12.107/graph-all",
	"7.2.13/graph",
	"6.12.107-armhf/mixed",
};

/* Recordings of kernels, also of 32 bits. A .dat has no room for enumerators. */
static void test_written_recordings(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(recorded); i++) {
		_cleanup_buf_ struct buf stream = BUF_INIT;
		_cleanup_close_ int fd = -EBADF;
		char path[256];

		snprintf(path, sizeof(path), TEST_DATA "/%s.traced.gz", recorded[i]);
		fixture_read_gz(path, &stream);
		fd = memory_file(stream.data, stream.len);
		check_both(fd, 0);
	}
}

#if HAVE_ZSTD
static void refuses_to_go_back(int stream, int flags, off_t at)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_close_ int out = memory_file("what was there", 14);

	assert_int_equal(fcntl(out, F_SETFL, flags), 0);
	assert_int_equal(lseek(out, at, SEEK_SET), at);
	assert_int_equal(to_dat(stream, 0, true, out, &result, &err), -ESPIPE);
	assert_non_null(strstr(err.message, "appended to a file"));
}
#endif

static void test_written_into_a_pipe(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
	_cleanup_export_result_ struct export_result result = { 0 }, other = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_close_ int in = -EBADF, out = -EBADF;
	struct buf dat = BUF_INIT;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	in = ends[0];
	out = ends[1];
	maker_begin(&m, 1024);
	page_begin(&m, 1000000000);
	event_number(&m, 1000000001, 7, 42);
	maker_finish(&m);
	/* The file fits into the pipe. */
	assert_int_equal(to_dat(m.fd, 0, false, out, &result, &err), 0);
	assert_non_null(buf_reserve(&dat, 1 << 16));
	dat.len = (size_t)read(in, dat.data, 1 << 16);
	assert_int_equal(dat.len, result.bytes);
	assert_int_equal(dat_to_text(&dat, NULL, &other, &text, NULL), 0);
	assert_non_null(strstr(text.data, "value=42"));
	buf_deinit(&dat);
#if HAVE_ZSTD
	export_result_deinit(&result);
	assert_int_equal(to_dat(m.fd, 0, true, out, &result, &err), -ESPIPE);
	assert_non_null(strstr(err.message, "pipe"));
	refuses_to_go_back(m.fd, O_APPEND, 0);
	refuses_to_go_back(m.fd, 0, 1);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_machines),
		cmocka_unit_test(test_written_excerpt),
		cmocka_unit_test(test_written_odd_excerpt),
		cmocka_unit_test(test_written_without_symbols),
		cmocka_unit_test(test_written_once),
		cmocka_unit_test(test_written_again),
		cmocka_unit_test(test_written_recordings),
		cmocka_unit_test(test_written_into_a_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
