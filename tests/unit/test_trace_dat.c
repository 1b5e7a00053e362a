/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace-cmd's own files against the kernel's own text of the same buffers; synthetic files of any
 * machine; truncated and false ones.
 */
#include <endian.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "dat_text.h"
#include "fixture.h"
#include "formats/formats.h"
#include "formats/import.h"
#include "make_dat.h"
#include "memory_file.h"

#define PEER TEST_DATA "/trace-cmd-3.1.6/"

static void check_peer(const char *file, const char *instance, const char *kernel)
{
	_cleanup_buf_ struct buf dat = BUF_INIT, is = BUF_INIT, should = BUF_INIT;
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	fixture_read_gz(file, &dat);
	fixture_read_gz(kernel, &should);
	if (dat_to_text(&dat, instance, &result, &is, &err) < 0)
		fail_msg("%s: %s", file, err.message);
	assert_string_equal(text_body(is.data), text_body(should.data));
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
		assert_int_equal(dat_to_text(&dat, NULL, &result, &text, NULL), 0);
		assert_int_equal(lines(text_body(text.data)),
				 lines(text_body(one.data)) + lines(text_body(two.data)));
		assert_int_equal(result.ledger_count, 2);
		for (p = text_body(text.data); *p; p = strchr(p, '\n') + 1) {
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

static void dat_text(const struct dat_maker *d, struct export_result *result, struct buf *text)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf dat = BUF_INIT;

	make_dat(d, &dat);
	if (dat_to_text(&dat, NULL, result, text, &err) < 0)
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

		maker_dat_pages(&m, i & 1 ? 4 : 8, i & 2, 2);
		dat_text(&(struct dat_maker){ .m = &m, .version = i & 4 ? 6 : 7 }, &result, &text);
		assert_string_equal(text_body(text.data), six_events);
		assert_int_equal(result.lost, 5);
	}
}

static void test_instances(void **state _unused_)
{
	for (unsigned version = 6; version <= 7; version++) {
		_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
		_cleanup_export_result_ struct export_result result = { 0 };
		_cleanup_buf_ struct buf text = BUF_INIT;

		maker_dat_pages(&m, 8, false, 2);
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

		maker_dat_pages(&m, 8, i & 1, 1);
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
	r = dat_to_text(&part, NULL, &result, &text, &err);
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

		maker_dat_pages(&m, 8, false, 2);
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

		maker_dat_pages(&m, 8, false, 2);
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

	assert_int_equal(dat_to_text(dat, instance, &result, &text, &err), code);
	if (!strstr(err.message, words))
		fail_msg("\"%s\" does not say \"%s\"", err.message, words);
	/* A caller that asks for no reason is refused as well. */
	assert_int_equal(dat_to_text(dat, instance, &result, &text, NULL), code);
}

static void test_refused(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
	_cleanup_buf_ struct buf dat = BUF_INIT;

	maker_dat_pages(&m, 8, false, 1);
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

	maker_dat_pages(&m, 8, false, 1);
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

	maker_dat_pages(&m, 8, false, 1);
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

	maker_dat_pages(&m, 8, false, 1);
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

	maker_dat_pages(&m, 8, false, 1);
	make_dat(&(struct dat_maker){ .m = &m, .version = 6 }, &dat);
	kind = memmem(dat.data, dat.len, "flyrecord", 9);
	assert_non_null(kind);
	memcpy(kind, LATENCY, sizeof(LATENCY));
	expect_failure(&dat, NULL, -EBADMSG, "latency");
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
		assert_int_equal(lines(text_body(is.data)), result.events);
	}
}

/* Data in the .dat is missing without it, as is data that it no longer has. */
static void test_pages_gone(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
	_cleanup_close_ int in = -EBADF, stream = memory_file("", 0), out = memory_file("", 0);
	_cleanup_buf_ struct buf dat = BUF_INIT, text = BUF_INIT;

	maker_dat_pages(&m, 8, false, 2);
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

/* A stretch of zeros, as a crash leaves it: one of three sub-buffers, then nothing but zeros. */
static void test_zeroed_pages(void **state _unused_)
{
	for (unsigned i = 0; i < 4; i++) {
		_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
		_cleanup_export_result_ struct export_result result = { 0 };
		_cleanup_buf_ struct buf text = BUF_INIT;

		maker_dat_pages(&m, 8, false, 3);
		memset(m.subbufs.data + (i < 3 ? i * m.subbuf_size : 0), 0,
		       i < 3 ? m.subbuf_size : m.subbufs.len);
		dat_text(&(struct dat_maker){ .m = &m, .version = 6 + i % 2 }, &result, &text);
		assert_true(result.incomplete);
		assert_int_equal(result.events, i < 3 ? 6 : 0);
		assert_string_equal(result.warnings[0], "part of what CPU 0 recorded is damaged");
		assert_int_equal(result.ledger[0].gaps, i == 2 ? 2 : 1);
		assert_non_null(strstr(text.data, "CPU:0 [LOST EVENTS]\n"));
	}
}

#if HAVE_ZSTD
/* The same in a compressed file, from the beginning of a block. */
static void test_zeroed_block(void **state _unused_)
{
	/* A block of 10 sub-buffers: its expanded size, and the first bytes of its data. */
	static const char block[] = "\0\xa0\0\0\x28\xb5\x2f\xfd";
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_buf_ struct buf dat = BUF_INIT, text = BUF_INIT;
	char *at;

	fixture_read_gz(PEER "v7-zstd.dat", &dat);
	at = memmem(dat.data, dat.len, block, sizeof(block) - 1);
	assert_non_null(at);
	memset(at - 4, 0, 4096);
	assert_int_equal(dat_to_text(&dat, NULL, &result, &text, NULL), 0);
	assert_true(result.incomplete);
	assert_non_null(strstr(result.warnings[0], "is cut or damaged: events of CPU"));
}
#endif

/* The error does not name an offset within the stream made of the file. */
static void test_bad_part(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_buf_ struct buf dat = BUF_INIT, text = BUF_INIT;
	char *id;

	maker_dat_pages(&m, 8, false, 2);
	make_dat(&(struct dat_maker){ .m = &m, .version = 6 }, &dat);
	id = memmem(dat.data, dat.len, "\nID:", 4);
	assert_non_null(id);
	memcpy(id, "\nXX:", 4);
	assert_int_equal(dat_to_text(&dat, NULL, &result, &text, NULL), 0);
	assert_true(result.incomplete);
	assert_string_equal(
		result.warnings[0],
		"one of its event formats is left out: an event format without a number");
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
		cmocka_unit_test(test_kept_stream),
		cmocka_unit_test(test_pages_gone),
		cmocka_unit_test(test_zeroed_pages),
#if HAVE_ZSTD
		cmocka_unit_test(test_zeroed_block),
#endif
		cmocka_unit_test(test_bad_part),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
