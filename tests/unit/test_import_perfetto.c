/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recordings of tests/data and synthetic ones, written as Perfetto traces and turned back: their
 * text against the text of the recording itself. Then files that are cut or lie, and those of
 * others.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "fixture.h"
#include "formats/formats.h"
#include "formats/import.h"
#include "formats/perfetto/rest.h"
#include "formats/perfetto/wire.h"
#include "make_kinds.h"
#include "memory_file.h"

#define S UINT64_C(1000000000)
#define CASES_MIN 15

static void export_to(int stream, const struct export_options *o, struct export_result *result,
		      struct buf *out)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_close_ int fd = memory_file("", 0);

	if (export_stream(stream, fd, o, result, &err) < 0)
		fail_msg("export: %s", err.message);
	memory_file_read(fd, out);
}

/* Returns what import_stream does; the text of what it made, if that is 0. */
static int turn_back(const struct buf *trace, struct export_result *result, struct buf *text,
		     struct error *err)
{
	_cleanup_close_ int in = memory_file(trace->data, trace->len);
	_cleanup_close_ int stream = memory_file("", 0);
	struct export_options o = { .format = "txt", .threads = 1, .raw_addresses = true };
	int r = import_stream(in, stream, &(struct import_options){ 0 }, err);

	if (r == 0)
		export_to(stream, &o, result, text);
	return r;
}

static void same_text(const char *name, const char *should, const char *is)
{
	while (*should && *is) {
		size_t a = strcspn(should, "\n"), b = strcspn(is, "\n");

		if (a != b || memcmp(should, is, a) != 0)
			fail_msg("%s:\n  of the recording: %.*s\n  of the trace:     %.*s", name,
				 (int)a, should, (int)b, is);
		should += a + (should[a] == '\n');
		is += b + (is[b] == '\n');
	}
	if (*should || *is)
		fail_msg("%s: one has more lines than the other", name);
}

/* The recording's text, and that of the Perfetto trace with these options. */
static void compare(const char *name, int stream, const struct export_options *perfetto)
{
	_cleanup_export_result_ struct export_result a = { 0 }, b = { 0 }, c = { 0 };
	struct export_options o = { .format = "txt", .threads = 1, .raw_addresses = true };
	_cleanup_buf_ struct buf should = BUF_INIT, trace = BUF_INIT, is = BUF_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;

	export_to(stream, &o, &a, &should);
	export_to(stream, perfetto, &b, &trace);
	if (turn_back(&trace, &c, &is, &err) < 0)
		fail_msg("%s: %s", name, err.message);
	same_text(name, should.data, is.data);
	assert_int_equal(c.events, a.events);
	assert_int_equal(c.lost, a.lost);
	assert_int_equal(c.incomplete, a.incomplete);
}

typedef void (*case_t)(const char *name, int stream);

static unsigned each_case(const char *kernel, case_t check)
{
	char path[1024];
	unsigned count = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), TEST_DATA "/%s", kernel);
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		_cleanup_buf_ struct buf capture = BUF_INIT;
		_cleanup_close_ int stream = -EBADF;

		if (!strstr(e->d_name, ".traced"))
			continue;
		snprintf(path, sizeof(path), TEST_DATA "/%s/%s", kernel, e->d_name);
		fixture_read_gz(path, &capture);
		stream = memory_file(capture.data, capture.len);
		check(path, stream);
		count++;
	}
	closedir(dir);
	return count;
}

static void check_plain(const char *name, int stream)
{
	compare(name, stream,
		&(struct export_options){ .format = "pftrace", .raw_addresses = true });
}

/* Of 32 and 64 bits, both byte orders; function tracers, stacks, arguments, all events. */
static void test_recordings(void **state _unused_)
{
	struct dirent *e;
	unsigned count = 0;
	DIR *dir = opendir(TEST_DATA);

	assert_non_null(dir);
	while ((e = readdir(dir)))
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9')
			count += each_case(e->d_name, check_plain);
	closedir(dir);
	assert_true(count >= CASES_MIN);
}

static void check_forms(const char *name, int stream)
{
	const struct perfetto_options forms[] = {
		{ .plain_sched = true },
		{ .legacy_generic = true },
		{ .compression = PERFETTO_DEFLATE },
#if HAVE_ZSTD
		{ .compression = PERFETTO_ZSTD },
#endif
	};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		compare(name, stream,
			&(struct export_options){
				.format = "pftrace", .raw_addresses = true, .perfetto = forms[i] });
	compare(name, stream,
		&(struct export_options){ .format = "pftrace.gz", .raw_addresses = true });
}

static void test_forms(void **state _unused_)
{
	assert_true(each_case("6.18.44", check_forms) > 0);
	assert_true(each_case("6.12.107", check_forms) > 0);
}

/* Without addresses: what the text hides is hidden in the same way. */
static void check_hidden(const char *name, int stream)
{
	_cleanup_export_result_ struct export_result a = { 0 }, b = { 0 }, c = { 0 };
	_cleanup_buf_ struct buf should = BUF_INIT, trace = BUF_INIT, is = BUF_INIT;
	struct export_options o = { .format = "txt", .threads = 1 };

	export_to(stream, &o, &a, &should);
	o.format = "pftrace";
	export_to(stream, &o, &b, &trace);
	assert_int_equal(turn_back(&trace, &c, &is, NULL), 0);
	same_text(name, should.data, is.data);
}

static void test_hidden(void **state _unused_)
{
	assert_true(each_case("6.18.44", check_hidden) > 0);
	assert_true(each_case("6.12.107-arm64", check_hidden) > 0);
}

/* Gaps of a known and an unknown length; events of one time, compact and not; a CPU beyond. */
static void make_gaps(struct maker *m, unsigned word_size, bool big_endian)
{
	maker_init(m, word_size, big_endian, 4096);
	maker_head(m);
	page_begin(m, 100 * S);
	event_switch(m, 100 * S, 0, "swapper/0", 0, 120, 7, "seven");
	event_switch(m, 100 * S + 10, 7, "seven", 1, 120, 8, "eight");
	event_number(m, 100 * S + 10, 8, 1);
	event_switch(m, 100 * S + 10, 8, "eight", 2, 120, 9, "nine");
	event_number(m, 100 * S + 20, 9, 2);
	event_switch(m, 100 * S + 20, 9, "nine", 0, 120, 0, "swapper/0");
	page_end(m, 0);
	page_begin(m, 101 * S);
	event_number(m, 101 * S, 9, 3);
	page_end(m, 1234);
	page_begin(m, 400000 * S);
	event_switch(m, 400000 * S, 9, "nine", 0, 120, 0, "swapper/0");
	event_number(m, 400000 * S + 1, 0, 4);
	page_end(m, UINT64_MAX);
	maker_flush(m, 0, BUFFER_MAIN, 0);
	page_begin(m, 100 * S + 5);
	event_print_mark(m, 100 * S + 5, 3, "no mark of atrace");
	event_print_mark(m, 100 * S + 6, 3, "B|3|one");
	event_print_mark(m, 100 * S + 7, 3, "E|3");
	page_end(m, 0);
	maker_flush(m, 700, BUFFER_MAIN, 0);
	maker_end(m);
}

static const struct {
	unsigned word_size;
	bool big_endian;
} machines[] = { { 8, false }, { 8, true }, { 4, false }, { 4, true } };

/* Fields of every kind, of every machine, in every form. */
static void test_kinds(void **state _unused_)
{
	const struct perfetto_options forms[] = { { 0 }, { .legacy_generic = true } };

	for (size_t i = 0; i < ARRAY_SIZE(machines) * ARRAY_SIZE(forms); i++) {
		size_t kind = i % ARRAY_SIZE(machines);
		struct export_options o = { .format = "pftrace",
					    .perfetto = forms[i / ARRAY_SIZE(machines)] };
		_cleanup_(maker_deinit) struct maker m;

		maker_init(&m, machines[kind].word_size, machines[kind].big_endian, 4096);
		maker_head(&m);
		maker_kinds(&m);
		page_begin(&m, 100 * S);
		event_kinds(&m, 100 * S);
		event_kinds(&m, 101 * S);
		page_end(&m, 0);
		maker_flush(&m, 0, BUFFER_MAIN, 0);
		maker_end(&m);
		check_hidden("kinds, hidden", m.fd);
		o.raw_addresses = true;
		compare("kinds", m.fd, &o);
	}
}

static void test_gaps(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		_cleanup_(maker_deinit) struct maker m;

		make_gaps(&m, machines[i].word_size, machines[i].big_endian);
		compare("gaps", m.fd, &(struct export_options){ .format = "pftrace" });
	}
}

static void small_trace(struct buf *trace)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_(maker_deinit) struct maker m;

	make_gaps(&m, 8, false);
	export_to(m.fd, &(struct export_options){ .format = "pftrace" }, &result, trace);
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* What follows the comment lines. */
static const char *events(const char *text)
{
	while (*text == '#')
		text = strchr(text, '\n') + 1;
	return text;
}

/* What came before the cut is there, and that something is missing is said. */
static void test_cut(void **state _unused_)
{
	_cleanup_buf_ struct buf trace = BUF_INIT, whole = BUF_INIT;
	_cleanup_export_result_ struct export_result all = { 0 };
	size_t before = 0, read = 0;

	small_trace(&trace);
	assert_int_equal(turn_back(&trace, &all, &whole, NULL), 0);
	assert_false(all.incomplete);
	for (size_t len = 0; len < trace.len; len++) {
		const struct buf cut = { .data = trace.data, .len = len };
		_cleanup_export_result_ struct export_result result = { 0 };
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf text = BUF_INIT;
		int r = turn_back(&cut, &result, &text, &err);

		if (r < 0) {
			assert_int_equal(r, -EBADMSG);
			assert_non_null(err.message);
			assert_int_equal(read, 0);
			continue;
		}
		read++;
		/* Between packets, too. */
		assert_true(result.incomplete);
		assert_true(count_lines(text.data) >= before);
		before = count_lines(text.data);
	}
	/* Its first packets tell too little; the last ones nothing of events. */
	assert_true(read > trace.len / 4);
	assert_int_equal(before, count_lines(whole.data));
}

/* Each byte, and several, as large as can be: no crash, no gigabytes, no hang. */
static void test_lies(void **state _unused_)
{
	static const size_t widths[] = { 1, 4, 9 };
	_cleanup_buf_ struct buf trace = BUF_INIT;
	struct rlimit old;

	small_trace(&trace);
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
#ifndef __SANITIZE_ADDRESS__
	assert_int_equal(setrlimit(RLIMIT_AS, &(struct rlimit){ (rlim_t)1 << 30, old.rlim_max }),
			 0);
#endif
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++) {
		for (size_t at = i; at + widths[i] < trace.len; at += i ? 3 : 1) {
			_cleanup_buf_ struct buf bad = BUF_INIT;
			_cleanup_error_ struct error err = ERROR_INIT;
			_cleanup_close_ int in = -EBADF, out = memory_file("", 0);

			buf_append(&bad, trace.data, trace.len);
			memset(bad.data + at, at % 5 ? 0xff : 0x7f, widths[i]);
			in = memory_file(bad.data, bad.len);
			if (import_stream(in, out, &(struct import_options){ 0 }, &err) < 0) {
				assert_non_null(err.message);
				assert_int_not_equal(err.code, ENOMEM);
			}
			assert_true(lseek(out, 0, SEEK_END) < 256 << 10);
		}
	}
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
}

/*
 * A file that was written before this build was: another one may have messages for other events.
 * That one had none for sched_switch.
 */
static void test_of_another_build(void **state _unused_)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_buf_ struct buf trace = BUF_INIT, should = BUF_INIT, is = BUF_INIT;

	fixture_read_gz(TEST_DATA "/perfetto/kinds.pftrace.gz", &trace);
	fixture_read_gz(TEST_DATA "/perfetto/kinds.txt.gz", &should);
	assert_int_equal(turn_back(&trace, &result, &is, NULL), 0);
	same_text("another build", buf_string(&should), is.data);
	assert_false(result.incomplete);
}

/* Of an event's text, with what a full ring of the kernel's takes, and a newline. */
static void test_long_records(void **state _unused_)
{
	for (size_t len = 4030; len <= 4054; len++) {
		_cleanup_(maker_deinit) struct maker m;
		char text[4096];

		memset(text, 'x', len);
		text[len] = '\0';
		maker_init(&m, 8, false, 4096);
		maker_head(&m);
		page_begin(&m, 100 * S);
		event_print_mark(&m, 100 * S, 1, text);
		page_end(&m, 0);
		maker_flush(&m, 0, BUFFER_MAIN, 0);
		maker_end(&m);
		compare("long", m.fd, &(struct export_options){ .format = "pftrace" });
	}
}

static void kinds_trace(struct buf *trace)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_(maker_deinit) struct maker m;

	maker_init(&m, 8, false, 4096);
	maker_head(&m);
	maker_kinds(&m);
	page_begin(&m, 100 * S);
	event_kinds(&m, 100 * S);
	page_end(&m, 0);
	maker_flush(&m, 0, BUFFER_MAIN, 0);
	maker_end(&m);
	export_to(m.fd, &(struct export_options){ .format = "pftrace" }, &result, trace);
}

/* Gives fields of that number, of bytes, one that nobody knows; the first count of them. */
static void hide_fields(struct buf *trace, uint32_t number, unsigned count)
{
	uint8_t tag[WIRE_TAG_MAX], other[WIRE_TAG_MAX];
	size_t len = (size_t)(wire_tag(tag, number, WIRE_BYTES) - tag);
	uint8_t *at = (uint8_t *)trace->data, *end = at + trace->len;

	wire_tag(other, number + 64, WIRE_BYTES);
	while (count && (at = memmem(at, (size_t)(end - at), tag, len))) {
		memcpy(at, other, len);
		count--;
	}
	assert_int_equal(count, 0);
}

/* What stands beside the messages is gone: that is said, and the rest is there. */
static void test_beside_is_gone(void **state _unused_)
{
	static const struct {
		uint32_t number;
		unsigned count;
		const char *there, *gone;
	} hidden[] = {
		{ BUNDLE_REST, 1, "small=-3", "outer+0x10" },
		{ BUNDLE_ADDRESSES, 1, "hidden+0x8", "site=outer+0x10" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
		_cleanup_export_result_ struct export_result result = { 0 };
		_cleanup_buf_ struct buf trace = BUF_INIT, text = BUF_INIT;

		kinds_trace(&trace);
		hide_fields(&trace, hidden[i].number, hidden[i].count);
		assert_int_equal(turn_back(&trace, &result, &text, NULL), 0);
		assert_non_null(strstr(text.data, hidden[i].there));
		assert_null(strstr(text.data, hidden[i].gone));
		assert_int_equal(result.events, 8);
		assert_true(i == 1 || result.incomplete);
	}
}

/* Times that run backwards: memory as for any others. */
static void test_backwards(void **state _unused_)
{
	_cleanup_export_result_ struct export_result result = { 0 }, again = { 0 };
	_cleanup_buf_ struct buf trace = BUF_INIT, text = BUF_INIT;
	_cleanup_(maker_deinit) struct maker m;
	struct rlimit old;

	maker_init(&m, 8, false, 4096);
	maker_head(&m);
	for (uint64_t n = 0; n < 20000; n++) {
		page_begin(&m, 100 * S - n);
		event_number(&m, 100 * S - n, 1, (uint32_t)n);
		page_end(&m, 0);
		if (n % 1000 == 999)
			maker_flush(&m, 0, BUFFER_MAIN, 0);
	}
	maker_end(&m);
	export_to(m.fd, &(struct export_options){ .format = "pftrace" }, &result, &trace);
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
#ifndef __SANITIZE_ADDRESS__
	assert_int_equal(setrlimit(RLIMIT_AS, &(struct rlimit){ (rlim_t)256 << 20, old.rlim_max }),
			 0);
#endif
	assert_int_equal(turn_back(&trace, &again, &text, NULL), 0);
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	assert_int_equal(again.events, 20000);
}

/* A trace that another program wrote has no formats: that is said, and who reads it. */
static void test_of_others(void **state _unused_)
{
	/* Packets with a timestamp, with a ClockSnapshot that is empty, and TraceStats. */
	static const char trace[] = "\x0a\x02\x40\x05\x0a\x02\x32\x00\x0a\x05\x9a\x02\x02\x08\x01";
	const struct buf other = { .data = (char *)(uintptr_t)trace, .len = sizeof(trace) - 1 };
	const struct buf cut = { .data = (char *)(uintptr_t)trace, .len = 8 };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;

	assert_int_equal(turn_back(&other, &result, &text, &err), -EBADMSG);
	assert_non_null(strstr(err.message, "Perfetto"));
	assert_non_null(strstr(err.hint, "ui.perfetto.dev"));
	error_deinit(&err);
	err = ERROR_INIT;
	/* Without its last packet it may have been ours. */
	assert_int_equal(turn_back(&cut, &result, &text, &err), -EBADMSG);
	assert_non_null(strstr(err.message, "cut or damaged"));
}

/* A bundle of a CPU that none has is left out, wherever it stands. */
static void test_bundle_of_no_cpu(void **state _unused_)
{
	/* TracePacket.ftrace_events, of which the CPU is 5000. */
	static const char bundle[] = "\x0a\x05\x0a\x03\x08\x88\x27";
	_cleanup_export_result_ struct export_result whole = { 0 }, result = { 0 };
	_cleanup_buf_ struct buf trace = BUF_INIT, should = BUF_INIT, is = BUF_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;

	small_trace(&trace);
	assert_int_equal(turn_back(&trace, &whole, &should, NULL), 0);
	buf_append(&trace, bundle, sizeof(bundle) - 1);
	if (turn_back(&trace, &result, &is, &err) < 0)
		fail_msg("%s", err.message);
	same_text("bundle of no CPU", events(should.data), events(is.data));
	assert_true(result.incomplete);
}

static void test_limit(void **state _unused_)
{
	_cleanup_buf_ struct buf trace = BUF_INIT;

	small_trace(&trace);
	for (unsigned i = 0; i < 2; i++) {
		_cleanup_close_ int in = memory_file(trace.data, trace.len);
		_cleanup_close_ int stream = memory_file("", 0);
		const struct import_options o = { .limit = i ? 8192 : 1 << 20 };

		assert_int_equal(import_stream(in, stream, &o, NULL), i ? -EDQUOT : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recordings),   cmocka_unit_test(test_forms),
		cmocka_unit_test(test_hidden),	     cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_kinds),	     cmocka_unit_test(test_cut),
		cmocka_unit_test(test_lies),	     cmocka_unit_test(test_of_others),
		cmocka_unit_test(test_long_records), cmocka_unit_test(test_beside_is_gone),
		cmocka_unit_test(test_backwards),    cmocka_unit_test(test_of_another_build),
		cmocka_unit_test(test_limit),	     cmocka_unit_test(test_bundle_of_no_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
