/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace-cmd's own files against the kernel's own text of the same buffers; synthetic files of any
 * machine; truncated and false ones; and written files, read back.
 */
#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/io.h"
#include "fixture.h"
#include "formats/formats.h"
#include "formats/import.h"
#include "make_dat.h"
#include "memory_file.h"
#include "stream/reader.h"

#define PEER TEST_DATA "/trace-cmd-3.1.6/"

/* Returns what import_stream() returns. */
static int to_text(const struct buf *dat, const char *instance, struct export_result *result,
		   struct buf *out, struct error *err)
{
	_cleanup_close_ int in = memory_file(dat->data, dat->len);
	_cleanup_close_ int stream = memory_file("", 0), text = memory_file("", 0);
	struct import_options o = { .instance = instance };
	int r;

	r = import_stream(in, stream, &o, err);
	if (r < 0)
		return r;
	if (export_stream(stream, text,
			  &(struct export_options){ .format = "txt", .threads = 1, .pages_fd = in },
			  result, err) < 0)
		fail_msg("export: %s", err->message);
	memory_file_read(text, out);
	return 0;
}

/* The text after the comment lines. */
static const char *events(const char *text)
{
	while (*text == '#')
		text = strchr(text, '\n') + 1;
	return text;
}

static void check_peer(const char *file, const char *instance, const char *kernel)
{
	_cleanup_buf_ struct buf dat = BUF_INIT, is = BUF_INIT, should = BUF_INIT;
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	fixture_read_gz(file, &dat);
	fixture_read_gz(kernel, &should);
	if (to_text(&dat, instance, &result, &is, &err) < 0)
		fail_msg("%s: %s", file, err.message);
	assert_string_equal(events(is.data), events(should.data));
	assert_int_equal(result.warning_count, 0);
	assert_false(result.incomplete);
}

static const char *const peers[] = { PEER "v6.dat.gz", PEER "v7-none.dat.gz",
#if HAVE_ZSTD
				     PEER "v7-zstd.dat"
#endif
};

static void test_peers(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++) {
		check_peer(peers[i], "dat-peer", PEER "dat-peer.txt.gz");
		check_peer(peers[i], "dat-two", PEER "dat-two.txt.gz");
	}
}

static size_t lines(const char *text)
{
	size_t n = 0;

	while ((text = strchr(text, '\n'))) {
		text++;
		n++;
	}
	return n;
}

/* All buffers: one trace, in order of time. */
static void test_peers_together(void **state _unused_)
{
	_cleanup_buf_ struct buf one = BUF_INIT, two = BUF_INIT;

	fixture_read_gz(PEER "dat-peer.txt.gz", &one);
	fixture_read_gz(PEER "dat-two.txt.gz", &two);
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++) {
		_cleanup_buf_ struct buf dat = BUF_INIT, text = BUF_INIT;
		_cleanup_export_result_ struct export_result result = { 0 };
		const char *p, *stamp;
		double before = 0;

		fixture_read_gz(peers[i], &dat);
		assert_int_equal(to_text(&dat, NULL, &result, &text, NULL), 0);
		assert_int_equal(lines(events(text.data)),
				 lines(events(one.data)) + lines(events(two.data)));
		assert_int_equal(result.ledger_count, 2);
		for (p = events(text.data); *p; p = strchr(p, '\n') + 1) {
			double now;

			/* "[000] ..... 12.345678: " */
			stamp = strchr(p, '[');
			assert_non_null(stamp);
			assert_int_equal(sscanf(stamp + 11, "%lf", &now), 1);
			assert_true(now >= before);
			before = now;
		}
		assert_true(before > 0);
	}
}

static void make_pages(struct maker *m, unsigned word_size, bool big_endian, unsigned pages)
{
	uint64_t ts = 1000000000;

	maker_init(m, word_size, big_endian, 1024);
	for (unsigned i = 0; i < pages; i++) {
		page_begin(m, ts);
		for (unsigned k = 0; k < 3; k++)
			event_number(m, ts += 1000, 7, i * 3 + k);
		page_end(m, i == 1 ? 5 : 0);
	}
}

static void dat_text(const struct dat_maker *d, struct export_result *result, struct buf *text)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf dat = BUF_INIT;

	make_dat(d, &dat);
	if (to_text(&dat, NULL, result, text, &err) < 0)
		fail_msg("version %u: %s", d->version, err.message);
}

static const char six_events[] =
	"           seven-7       [000] d..2.     1.000001: number: value=0\n"
	"           seven-7       [000] d..2.     1.000002: number: value=1\n"
	"           seven-7       [000] d..2.     1.000003: number: value=2\n"
	"CPU:0 [LOST 5 EVENTS]\n"
	"           seven-7       [000] d..2.     1.000004: number: value=3\n"
	"           seven-7       [000] d..2.     1.000005: number: value=4\n"
	"           seven-7       [000] d..2.     1.000006: number: value=5\n";

static void test_machines(void **state _unused_)
{
	for (unsigned i = 0; i < 8; i++) {
		_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
		_cleanup_export_result_ struct export_result result = { 0 };
		_cleanup_buf_ struct buf text = BUF_INIT;

		make_pages(&m, i & 1 ? 4 : 8, i & 2, 2);
		dat_text(&(struct dat_maker){ .m = &m, .version = i & 4 ? 6 : 7 }, &result, &text);
		assert_string_equal(events(text.data), six_events);
		assert_int_equal(result.lost, 5);
	}
}

static void test_instances(void **state _unused_)
{
	for (unsigned version = 6; version <= 7; version++) {
		_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
		_cleanup_export_result_ struct export_result result = { 0 };
		_cleanup_buf_ struct buf text = BUF_INIT;

		make_pages(&m, 8, false, 2);
		dat_text(&(struct dat_maker){ .m = &m, .version = version, .instances = 3 },
			 &result, &text);
		assert_int_equal(result.events, 4 * 6);
		assert_int_equal(result.lost, 4 * 5);
		assert_int_equal(result.ledger_count, 1);
	}
}

/* Offsets of both kinds add up; TSC's counts are converted to ns first. */
static void test_clocks(void **state _unused_)
{
	for (unsigned i = 0; i < 4; i++) {
		_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
		_cleanup_export_result_ struct export_result result = { 0 };
		_cleanup_buf_ struct buf text = BUF_INIT, tsc = BUF_INIT;

		make_pages(&m, 8, i & 1, 1);
		/* The factor is three quarters. */
		maker_u32(&m, &tsc, 3);
		maker_u32(&m, &tsc, 2);
		maker_u64(&m, &tsc, 0);
		const struct dat_option options[] = {
			{ 1, "0x3d0900", 9 }, /* 4 s, in us */
			{ 7, "-1000000000", 12 },  { 4, "local [x86-tsc]", 16 },
			{ 14, tsc.data, tsc.len }, { 999, "unknown", 7 },
		};

		dat_text(&(struct dat_maker){ .m = &m,
					      .version = i & 2 ? 6 : 7,
					      .options = options,
					      .option_count = ARRAY_SIZE(options) },
			 &result, &text);
		assert_non_null(strstr(text.data, "[000] d..2.     3.750001: number: value=0\n"));
		assert_non_null(strstr(text.data, "[000] d..2.     3.750002: number: value=2\n"));
	}
}

/* Either fails with a reason; or gives whole sub-buffers, and says that some are missing. */
static void check_cut(const struct buf *dat, size_t len, unsigned *salvaged)
{
	_cleanup_buf_ struct buf text = BUF_INIT, part = BUF_INIT;
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	int r;

	buf_append(&part, dat->data, len);
	r = to_text(&part, NULL, &result, &text, &err);
	if (r < 0) {
		assert_int_equal(r, -EBADMSG);
		assert_non_null(err.message);
		return;
	}
	assert_true(result.incomplete);
	assert_true(result.warning_count > 0);
	++*salvaged;
}

static void test_cut_anywhere(void **state _unused_)
{
	for (unsigned i = 0; i < 2; i++) {
		_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
		_cleanup_buf_ struct buf dat = BUF_INIT;
		unsigned salvaged = 0;

		make_pages(&m, 8, false, 2);
		make_dat(&(struct dat_maker){ .m = &m, .version = 6 + i, .instances = 1 }, &dat);
		for (size_t len = 0; len < dat.len; len++)
			check_cut(&dat, len, &salvaged);
		/* The options of a version 7 are its last bytes. */
		if (i == 0)
			assert_true(salvaged > 1024);
		else
			assert_int_equal(salvaged, 0);
	}
}

/* Each byte, and each 4 or 8 of them, set to all ones: no crash, no gigabytes, no hang. */
static void test_lies(void **state _unused_)
{
	struct rlimit old;

	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
#ifndef __SANITIZE_ADDRESS__
	assert_int_equal(setrlimit(RLIMIT_AS, &(struct rlimit){ (rlim_t)1 << 30, old.rlim_max }),
			 0);
#endif
	for (unsigned i = 0; i < 4; i++) {
		_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
		_cleanup_buf_ struct buf dat = BUF_INIT;
		size_t wide = i & 1 ? 8 : 4, step = i & 1 ? 1 : 3;

		make_pages(&m, 8, false, 2);
		make_dat(&(struct dat_maker){ .m = &m, .version = 6 + i / 2 }, &dat);
		for (size_t at = 10; at + wide < dat.len - m.subbufs.len; at += step) {
			_cleanup_export_result_ struct export_result result = { 0 };
			_cleanup_buf_ struct buf text = BUF_INIT, bad = BUF_INIT;
			_cleanup_error_ struct error err = ERROR_INIT;
			_cleanup_close_ int in = -EBADF, out = -EBADF;

			buf_append(&bad, dat.data, dat.len);
			memset(bad.data + at, at % 5 ? 0xff : 0x7f, wide);
			in = memory_file(bad.data, bad.len);
			out = memory_file("", 0);
			if (import_stream(in, out, &(struct import_options){ 0 }, &err) < 0) {
				assert_non_null(err.message);
				assert_int_not_equal(err.code, ENOMEM);
			}
			assert_true(lseek(out, 0, SEEK_END) < 64 << 10);
		}
	}
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
}

static void expect_failure(const struct buf *dat, const char *instance, int code, const char *words)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;

	assert_int_equal(to_text(dat, instance, &result, &text, &err), code);
	if (!strstr(err.message, words))
		fail_msg("\"%s\" does not say \"%s\"", err.message, words);
	/* A caller that asks for no reason is refused as well. */
	assert_int_equal(to_text(dat, instance, &result, &text, NULL), code);
}

static void test_refused(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
	_cleanup_buf_ struct buf dat = BUF_INIT;

	make_pages(&m, 8, false, 1);
	make_dat(&(struct dat_maker){ .m = &m, .version = 7, .instances = 1 }, &dat);
	expect_failure(&dat, "three", -ENOENT, "no buffer 'three'");
	memcpy(dat.data + 10, "8", 1);
	expect_failure(&dat, NULL, -EOPNOTSUPP, "version 8");
	memcpy(dat.data + 10, "7", 1);
	memcpy(dat.data + 18, "lzma", 4);
	expect_failure(&dat, NULL, -EOPNOTSUPP, "\"lzma\"");
	memcpy(dat.data, "x", 1);
	expect_failure(&dat, NULL, -EBADMSG, "not a file that can be read");
}

static void test_sizes_differ(void **state _unused_)
{
	static const char one[] = "one\0mono";
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
	_cleanup_buf_ struct buf dat = BUF_INIT;
	char *of;

	make_pages(&m, 8, false, 1);
	make_dat(&(struct dat_maker){ .m = &m, .version = 7, .instances = 1 }, &dat);
	of = memmem(dat.data, dat.len, one, sizeof(one));
	assert_non_null(of);
	memcpy(of + sizeof(one), &(uint32_t){ htole32(256) }, 4);
	expect_failure(&dat, NULL, -EINVAL, "different sizes");
}

/* Options that refer to themselves. */
static void test_endless_options(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
	_cleanup_buf_ struct buf dat = BUF_INIT;
	uint64_t first, size;

	make_pages(&m, 8, false, 1);
	make_dat(&(struct dat_maker){ .m = &m, .version = 7 }, &dat);
	memcpy(&first, dat.data + 24, 8);
	memcpy(&size, dat.data + le64toh(first) + 8, 8);
	memcpy(dat.data + le64toh(first) + 16 + le64toh(size) - 8, &first, 8);
	expect_failure(&dat, NULL, -EBADMSG, "no end");
}

/* The same with a few kilobytes that expand to many: they must not be expanded repeatedly. */
static void test_endless_packed_options(void **state _unused_)
{
	const size_t size = 32 << 20;
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
	_cleanup_buf_ struct buf dat = BUF_INIT;
	_cleanup_free_ uint8_t *options = calloc(1, size), *packed = malloc(1 << 20);
	uLongf len = 1 << 20;
	uint64_t at;

	make_pages(&m, 8, false, 1);
	make_dat(&(struct dat_maker){ .m = &m, .version = 7 }, &dat);
	memcpy(dat.data + 18, "zlib", 4);
	at = htole64(dat.len);
	memcpy(dat.data + 24, &at, sizeof(at));
	/* DONE, of 8 bytes: the place of further options. */
	options[2] = 8;
	memcpy(options + 6, &at, sizeof(at));
	assert_int_equal(compress(packed, &len, options, size), Z_OK);
	maker_u32(&m, &dat, 1U << 16); /* id 0, packed */
	maker_u32(&m, &dat, 0);
	maker_u64(&m, &dat, len + 8);
	maker_u32(&m, &dat, (uint32_t)len);
	maker_u32(&m, &dat, (uint32_t)size);
	buf_append(&dat, packed, len);
	expect_failure(&dat, NULL, -EBADMSG, "no end");
}

#define LATENCY "latency  "

static void test_text_only(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
	_cleanup_buf_ struct buf dat = BUF_INIT;
	char *kind;

	make_pages(&m, 8, false, 1);
	make_dat(&(struct dat_maker){ .m = &m, .version = 6 }, &dat);
	kind = memmem(dat.data, dat.len, "flyrecord", 9);
	assert_non_null(kind);
	memcpy(kind, LATENCY, sizeof(LATENCY));
	expect_failure(&dat, NULL, -EBADMSG, "latency");
}

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

static void stream_text(int stream, int pages, struct buf *text)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_close_ int out = memory_file("", 0);

	assert_int_equal(export_stream(stream, out,
				       &(struct export_options){ .format = "txt",
								 .threads = 1,
								 .raw_addresses = true,
								 .pages_fd = pages },
				       &result, NULL),
			 0);
	memory_file_read(out, text);
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
	assert_string_equal(events(is.data), events(should.data));
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

		make_pages(&m, 8, i & 1, 2);
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

static int to_stream(int stream, int pages, int out, struct export_result *result)
{
	return export_stream(stream, out,
			     &(struct export_options){ .format = "traced", .pages_fd = pages },
			     result, NULL);
}

/* The stored stream contains the sub-buffers, and is read without the .dat. */
static void test_kept_stream(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++) {
		_cleanup_close_ int in = -EBADF, stream = memory_file("", 0);
		_cleanup_close_ int kept = memory_file("", 0);
		_cleanup_export_result_ struct export_result result = { 0 };
		_cleanup_buf_ struct buf dat = BUF_INIT, should = BUF_INIT, is = BUF_INIT;

		fixture_read_gz(peers[i], &dat);
		in = memory_file(dat.data, dat.len);
		assert_int_equal(import_stream(in, stream, &(struct import_options){ 0 }, NULL), 0);
		assert_int_equal(to_stream(stream, in, kept, &result), 0);
		assert_int_equal(lseek(kept, 0, SEEK_CUR), (off_t)result.bytes);
		stream_text(stream, in, &should);
		stream_text(kept, 0, &is);
		assert_string_equal(is.data, should.data);
		assert_int_equal(lines(events(is.data)), result.events);
	}
}

/* Data in the .dat is missing without it, as is data that it no longer has. */
static void test_pages_gone(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
	_cleanup_close_ int in = -EBADF, stream = memory_file("", 0), out = memory_file("", 0);
	_cleanup_buf_ struct buf dat = BUF_INIT, text = BUF_INIT;

	make_pages(&m, 8, false, 2);
	make_dat(&(struct dat_maker){ .m = &m, .version = 6 }, &dat);
	in = memory_file(dat.data, dat.len);
	assert_int_equal(import_stream(in, stream, &(struct import_options){ 0 }, NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		_cleanup_export_result_ struct export_result result = { 0 };
		const struct export_options o = { .format = "txt",
						  .threads = 1,
						  .pages_fd = i ? in : 0 };

		assert_int_equal(ftruncate(in, (off_t)dat.len - 1), 0);
		assert_int_equal(export_stream(stream, out, &o, &result, NULL), 0);
		assert_int_equal(result.events, 0);
		assert_true(result.incomplete);
		assert_true(result.warning_count > 0);
	}
}

/* The error does not name an offset within the stream made of the file. */
static void test_bad_part(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_buf_ struct buf dat = BUF_INIT, text = BUF_INIT;
	char *id;

	make_pages(&m, 8, false, 2);
	make_dat(&(struct dat_maker){ .m = &m, .version = 6 }, &dat);
	id = memmem(dat.data, dat.len, "\nID:", 4);
	assert_non_null(id);
	memcpy(id, "\nXX:", 4);
	assert_int_equal(to_text(&dat, NULL, &result, &text, NULL), 0);
	assert_true(result.incomplete);
	assert_string_equal(
		result.warnings[0],
		"one of its event formats is left out: an event format without a number");
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

/* The expanded stream may exceed the limit. */
static void test_limit(void **state _unused_)
{
	_cleanup_close_ int in = open(PEER "v7-zstd.dat", O_RDONLY | O_CLOEXEC);
	struct import_options o = { 0 };
	uint64_t whole = 0;

	for (unsigned i = 0; i < 3; i++) {
		_cleanup_close_ int stream = memory_file("", 0);
		struct stat st;

		/*
		 * No limit; half of the size; all of it plus the room that a limit reserves for a
		 * stream's end.
		 */
		o.limit = i == 0 ? 0 : i == 1 ? whole / 2 : whole + (1 << 20);
		assert_int_equal(import_stream(in, stream, &o, NULL), i == 1 ? -EDQUOT : 0);
		assert_int_equal(fstat(stream, &st), 0);
		if (i == 1)
			assert_true((uint64_t)st.st_size <= o.limit);
		if (i == 0)
			whole = (uint64_t)st.st_size;
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
	assert_int_equal(to_text(&dat, NULL, &other, &text, NULL), 0);
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
		cmocka_unit_test(test_peers),
		cmocka_unit_test(test_peers_together),
		cmocka_unit_test(test_machines),
		cmocka_unit_test(test_instances),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_sizes_differ),
		cmocka_unit_test(test_endless_options),
		cmocka_unit_test(test_endless_packed_options),
		cmocka_unit_test(test_text_only),
		cmocka_unit_test(test_written_machines),
		cmocka_unit_test(test_written_excerpt),
		cmocka_unit_test(test_written_odd_excerpt),
		cmocka_unit_test(test_written_without_symbols),
		cmocka_unit_test(test_written_once),
		cmocka_unit_test(test_written_again),
		cmocka_unit_test(test_kept_stream),
		cmocka_unit_test(test_pages_gone),
		cmocka_unit_test(test_bad_part),
		cmocka_unit_test(test_written_recordings),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_written_into_a_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
