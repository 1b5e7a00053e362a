/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An export that follows a recording, against an export of the same stream once it is complete. A
 * simulated recorder writes on all CPUs all the time, even while other CPUs are flushed.
 */
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exported.h"
#include "formats/formats.h"
#include "make_stream.h"
#include "memory_file.h"

#define CPUS 5
#define SUBBUF 512

/* A recorder in the middle of its work. */
struct recorder {
	struct maker m[CPUS]; /* each CPU's current page; m[0] has the stream */
	bool open[CPUS];
	uint64_t ts;
	unsigned seed;
	uint32_t number; /* of the last event */
};

static unsigned chance(struct recorder *r, unsigned n)
{
	r->seed = r->seed * 1103515245 + 12345;
	return (r->seed >> 16) % n;
}

static void put_page(struct recorder *r, unsigned cpu)
{
	if (!r->open[cpu])
		return;
	page_end(&r->m[cpu], 0);
	r->m[0].writer.failed = 0;
	if (cpu)
		buf_append(&r->m[0].subbufs, r->m[cpu].subbufs.data, r->m[cpu].subbufs.len);
	if (cpu)
		buf_clear(&r->m[cpu].subbufs);
	maker_flush(&r->m[0], cpu, BUFFER_MAIN, 0);
	r->open[cpu] = false;
}

static void write_event(struct recorder *r)
{
	unsigned cpu = chance(r, CPUS);
	struct maker *m = &r->m[cpu];

	r->ts += chance(r, 3); /* equal times are frequent */
	if (r->open[cpu] && m->page.len > SUBBUF - 64)
		put_page(r, cpu);
	if (!r->open[cpu])
		page_begin(m, r->ts);
	r->open[cpu] = true;
	event_number(m, r->ts, 0, ++r->number);
}

static void flush(struct recorder *r)
{
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		put_page(r, cpu);
		for (unsigned n = chance(r, 4); n-- > 0;)
			write_event(r);
	}
	assert_int_equal(stream_write(&r->m[0].writer, CHUNK_FLUSH, "", 0), 0);
}

static void record(struct recorder *r, unsigned seed, unsigned events)
{
	*r = (struct recorder){ .seed = seed, .ts = 1000000 };
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		maker_init(&r->m[cpu], 8, false, SUBBUF);
	maker_head(&r->m[0]);
	while (r->number < events) {
		write_event(r);
		if (chance(r, 40) == 0)
			flush(r);
	}
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		put_page(r, cpu);
	maker_end(&r->m[0]);
}

static void recorder_deinit(struct recorder *r)
{
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		maker_deinit(&r->m[cpu]);
}

static char *read_all(int fd)
{
	struct buf text = BUF_INIT;

	memory_file_read(fd, &text);
	return text.data;
}

static char *export(int fd, const char *format, const struct export_follow *follow,
		    struct export_result *result)
{
	_cleanup_close_ int out = memory_file("", 0);
	const struct export_options o = { .format = format, .follow = follow };
	_cleanup_error_ struct error err = ERROR_INIT;
	int r = export_stream(fd, out, &o, result, &err);

	if (r < 0)
		fail_msg("%s", err.message);
	return read_all(out);
}

static void follow_in_slices(int fd, unsigned seed, unsigned slice_max)
{
	_cleanup_close_ int to = memory_file("", 0);
	_cleanup_export_result_ struct export_result whole, followed;
	_cleanup_free_ char *expected = export(fd, "txt", NULL, &whole), *text = NULL;
	struct feed feed = { .to = to, .seed = seed, .slice_max = 64 };
	const struct export_follow follow = { .wait = give_slice, .userdata = &feed };

	feed_begin(&feed, fd);
	feed.slice_max = slice_max;
	text = export(to, "txt", &follow, &followed);
	assert_string_equal(text_body(text), text_body(expected));
	assert_int_equal(followed.events, whole.events);
	assert_int_equal(followed.incomplete, whole.incomplete);
	assert_int_equal(followed.warning_count, 0);
	assert_true(feed.waits > 3);
	/* Nearly all of the stream was freed. */
	assert_true(feed.gone > feed.size / 2);
}

static void slices_make_the_same_text(void **state _unused_)
{
	for (unsigned seed = 1; seed < 30; seed++) {
		struct recorder r;

		record(&r, seed, 3000);
		follow_in_slices(r.m[0].fd, seed, seed % 2 ? 20000 : 700);
		recorder_deinit(&r);
	}
}

static void mark_numbers(const char *text, bool *seen, size_t count)
{
	for (const char *at = text; (at = strstr(at, "number: value=")); at++) {
		size_t n = strtoul(at + strlen("number: value="), NULL, 10);

		assert_in_range(n, 1, count - 1);
		seen[n] = true;
	}
}

/* The text so far and the rest of the stream together have all events recorded by then. */
static void nothing_is_only_in_memory(void **state _unused_)
{
	static bool all[4000], left[4000];

	for (unsigned seed = 1; seed < 30; seed++) {
		_cleanup_close_ int to = memory_file("", 0);
		_cleanup_close_ int out = memory_file("", 0);
		_cleanup_export_result_ struct export_result result, whole, rest;
		_cleanup_free_ char *expected = NULL, *text = NULL, *spool = NULL;
		struct feed feed = { .to = to, .seed = seed, .slice_max = 9000 };
		const struct export_follow follow = { .wait = give_slice, .userdata = &feed };
		const struct export_options o = { .format = "txt", .follow = &follow };
		struct recorder r;

		record(&r, seed, 3000);
		feed_begin(&feed, r.m[0].fd);
		feed.dies_at = 10 + seed / 2;
		assert_int_equal(export_stream(to, out, &o, &result, NULL), -EIO);
		assert_int_equal(ftruncate(r.m[0].fd, (off_t)feed.given), 0);
		memset(all, 0, sizeof(all));
		memset(left, 0, sizeof(left));
		expected = export(r.m[0].fd, "txt", NULL, &whole);
		mark_numbers(expected, all, ARRAY_SIZE(all));
		text = read_all(out);
		mark_numbers(text, left, ARRAY_SIZE(left));
		spool = export(to, "txt", NULL, &rest);
		mark_numbers(spool, left, ARRAY_SIZE(left));
		assert_memory_equal(left, all, sizeof(all));
		recorder_deinit(&r);
	}
}

static void put_event(struct maker *m, uint64_t ts, unsigned cpu)
{
	page_begin(m, ts);
	event_number(m, ts, 0, (uint32_t)ts);
	page_flush(m, 0, cpu);
}

/* The events of a rest begin behind the freed part: nothing is lost there, but a gap within is. */
static void a_freed_beginning_is_no_loss(void **state _unused_)
{
	for (unsigned i = 0; i < 2; i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_export_result_ struct export_result result;
		_cleanup_free_ char *text = NULL;
		uint64_t from, to;

		maker_begin(&m, SUBBUF);
		if (i)
			put_event(&m, 1000, 0);
		from = m.writer.bytes;
		assert_int_equal(stream_write(&m.writer, CHUNK_FLUSH, "", 0), 0);
		put_event(&m, 2000, 0);
		to = m.writer.bytes;
		put_event(&m, 3000, 0);
		put_event(&m, 4000, 1);
		maker_end(&m);
		assert_int_equal(fallocate(m.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					   (off_t)from, (off_t)(to - from)),
				 0);
		text = export(m.fd, "txt", NULL, &result);
		assert_int_equal(result.events, 2 + i);
		assert_int_equal(strstr(text, "LOST EVENTS") != NULL, i);
		assert_true(result.incomplete);
		assert_string_equal(result.warnings[0],
				    "a part of it was freed during the recording, once it had been "
				    "read: its events are missing here");
	}
}

/* For any length, only the tasks that lived are kept. */
static void memory_does_not_grow(void **state _unused_)
{
	_cleanup_close_ int to = memory_file("", 0);
	_cleanup_close_ int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	_cleanup_export_result_ struct export_result result;
	struct feed feed = { .to = to, .seed = 1, .slice_max = 1 << 20 };
	const struct export_follow follow = { .wait = give_slice, .userdata = &feed };
	const struct export_options o = { .format = "pftrace", .follow = &follow };
	struct recorder r;
	size_t before;

	record(&r, 1, 1000000);
	feed_begin(&feed, r.m[0].fd);
	assert_true(feed.size > 20 << 20);
	before = mallinfo2().uordblks;
	assert_int_equal(export_stream(to, out, &o, &result, NULL), 0);
	assert_in_range(result.events, 1000000, 1000100);
	assert_in_range(feed.memory_max - before, 0, 8 << 20);
	recorder_deinit(&r);
}

/* Also for a caller that asks for no reason. */
static void formats_that_can_not_follow_are_refused(void **state _unused_)
{
	static const char *const formats[] = { "ctf", "dat" };

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		_cleanup_close_ int to = memory_file("", 0);
		_cleanup_close_ int out = memory_file("", 0);
		_cleanup_export_result_ struct export_result result;
		struct feed feed = { .to = to, .seed = 1, .slice_max = 5000 };
		const struct export_follow follow = { .wait = give_slice, .userdata = &feed };
		const struct export_options o = { .format = formats[i], .follow = &follow };
		struct recorder r;

		record(&r, 1, 3000);
		feed_begin(&feed, r.m[0].fd);
		assert_int_equal(export_stream(to, out, &o, &result, NULL), -EINVAL);
		recorder_deinit(&r);
	}
}

/* The JSON of a recording that is longer than its string may be. */
static char *follow_json(bool segments, struct export_result *ret)
{
	_cleanup_close_ int to = memory_file("", 0);
	_cleanup_close_ int out = memory_file("", 0);
	struct feed feed = { .to = to, .seed = 1, .slice_max = 5000 };
	const struct export_follow follow = { .wait = give_slice, .userdata = &feed };
	struct export_options o = {
		.format = "json", .follow = &follow, .json_string_max = 50000, .segments = segments
	};
	struct recorder r;

	record(&r, 1, 3000);
	feed_begin(&feed, r.m[0].fd);
	assert_int_equal(export_stream(to, out, &o, ret, NULL), 0);
	recorder_deinit(&r);
	return read_all(out);
}

/* This output would be the only copy. */
static void a_full_json_is_closed(void **state _unused_)
{
	_cleanup_export_result_ struct export_result result;
	_cleanup_free_ char *text = follow_json(false, &result);

	assert_true(result.incomplete);
	assert_in_range(result.events, 100, 2000);
	assert_non_null(strstr(result.warnings[0], "what came later is missing"));
	assert_string_equal(text + strlen(text) - 3, "}}\n");
}

static void a_followed_json_goes_on(void **state _unused_)
{
	_cleanup_export_result_ struct export_result result;
	_cleanup_free_ char *text = follow_json(true, &result);

	assert_false(result.incomplete);
	assert_in_range(result.events, 3000, 3100);
	assert_in_range(result.segment_count, 2, 50);
	for (size_t i = 0; i < result.segment_count; i++) {
		const char *border = text + result.segment_ends[i];

		assert_memory_equal(border - 3, "}}\n{\"systemTraceEvents\":\"# tracer: nop", 37);
		assert_in_range(border - text - (i ? (long)result.segment_ends[i - 1] : 0), 40000,
				50000);
	}
}

#define ID_PLACE 900
#define PLACE UINT64_C(0xffffffffc0005010)

static void put_place(struct maker *m, uint64_t ts)
{
	const uint64_t ip = PLACE;

	page_begin(m, ts);
	maker_event(m, ts, ID_PLACE, 0, &ip, sizeof(ip));
	page_flush(m, 0, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(stream_write(&m->writer, CHUNK_FLUSH, "", 0), 0);
}

static int wait_for_more(void *userdata _unused_, uint64_t head _unused_, uint64_t done _unused_)
{
	return 0;
}

/* A symbol that arrives during a followed recording, at an address without a name so far. */
static void symbols_of_modules_come_late(void **state _unused_)
{
	const struct export_follow follow = { .wait = wait_for_more };
	_cleanup_export_result_ struct export_result result;
	_cleanup_free_ char *text = NULL;
	const char *first, *second;
	struct maker m;

	maker_begin(&m, SUBBUF);
	maker_format(&m, "test", "place", ID_PLACE,
		     "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n",
		     "\"%ps\", (void *)REC->ip");
	maker_symbols(&m, "ffffffff81000000 T _text\nffffffff81000000 T _stext\n"
			  "ffffffff82000000 T _etext\n");
	put_place(&m, 1000000);
	maker_symbols(&m, "ffffffffc0005000 t late_function\t[late]\n");
	put_place(&m, 2000000);
	maker_end(&m);
	text = export(m.fd, "txt", &follow, &result);
	first = strstr(text, "place: ");
	assert_non_null(first);
	second = strstr(first + 1, "place: ");
	assert_non_null(second);
	assert_memory_equal(first, "place: 0x", 9);
	assert_string_equal(second, "place: late_function [late]\n");
	assert_int_equal(result.warning_count, 0);
	maker_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_make_the_same_text),
		cmocka_unit_test(nothing_is_only_in_memory),
		cmocka_unit_test(a_freed_beginning_is_no_loss),
		cmocka_unit_test(memory_does_not_grow),
		cmocka_unit_test(formats_that_can_not_follow_are_refused),
		cmocka_unit_test(a_full_json_is_closed),
		cmocka_unit_test(a_followed_json_goes_on),
		cmocka_unit_test(symbols_of_modules_come_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
