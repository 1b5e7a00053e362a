/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Synthetic rings of marks, on their way through the exporter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "converted.h"
#include "make_stream.h"
#include "marks/decode.h"
#include "memory_file.h"
#include "traced/mark_record.h"

#define S UINT64_C(1000000000)

/* The records of one chunk. */
struct records {
	const struct maker *m;
	struct buf b;
	size_t record, field;
};

static void put_u16_at(struct records *r, size_t at, size_t v)
{
	_cleanup_buf_ struct buf two = BUF_INIT;

	maker_u16(r->m, &two, (uint16_t)v);
	memcpy(r->b.data + at, two.data, 2);
}

static void pad(struct records *r)
{
	while (r->b.len % 8)
		buf_putc(&r->b, 0);
}

static void end_record(struct records *r)
{
	pad(r);
	put_u16_at(r, r->record, (r->b.len - r->record) / 8);
}

static void record(struct records *r, uint8_t phase, uint8_t flags, uint32_t label, uint64_t time)
{
	r->record = r->b.len;
	maker_u16(r->m, &r->b, 0);
	buf_putc(&r->b, (char)phase);
	buf_putc(&r->b, (char)flags);
	maker_u32(r->m, &r->b, label);
	maker_u64(r->m, &r->b, time);
	end_record(r);
}

static void field(struct records *r, uint8_t kind, uint8_t type, uint32_t key)
{
	r->field = r->b.len;
	maker_u16(r->m, &r->b, 0);
	buf_putc(&r->b, (char)kind);
	buf_putc(&r->b, (char)type);
	maker_u32(r->m, &r->b, key);
}

static void text(struct records *r, const char *value)
{
	maker_u32(r->m, &r->b, (uint32_t)strlen(value));
	buf_puts(&r->b, value);
	pad(r);
}

static void end_field(struct records *r)
{
	put_u16_at(r, r->field, (r->b.len - r->field) / 8);
	end_record(r);
}

static void number(struct records *r, uint8_t kind, uint8_t type, uint32_t key, uint64_t value)
{
	field(r, kind, type, key);
	maker_u64(r->m, &r->b, value);
	end_field(r);
}

static void string(struct records *r, uint8_t kind, uint8_t type, uint32_t key, const char *value)
{
	field(r, kind, type, key);
	text(r, value);
	end_field(r);
}

static void define(struct records *r, uint32_t label, const char *name, const char *cat,
		   uint32_t parent)
{
	record(r, MARK_DEFINE, 0, label, 0);
	string(r, MARK_NAME, MARK_STRING, 0, name);
	string(r, MARK_CATEGORY, MARK_STRING, 0, cat);
	if (parent)
		number(r, MARK_PARENT, MARK_LABEL, 0, parent);
}

static void epoch(struct records *r, uint32_t generation, uint64_t time, uint64_t dropped)
{
	record(r, MARK_EPOCH, 0, generation, time);
	number(r, MARK_COUNT, MARK_UINT, 0, dropped);
}

static void producer(struct maker *m, uint32_t ring, int32_t tid, uint32_t clock)
{
	Traced__Capture__Producer p = TRACED__CAPTURE__PRODUCER__INIT;

	p.ring = ring;
	p.version = MARK_VERSION;
	p.pid = 70;
	p.tid = tid;
	p.clock = clock;
	p.generation = 3;
	p.boot_ns = 200 * S;
	assert_int_equal(stream_write_message(&m->writer, CHUNK_PRODUCER, &p.base), 0);
}

static void flush(struct maker *m, uint32_t ring, uint64_t dropped, struct records *r)
{
	struct marks_header h = { .dropped = htole64(dropped), .ring = htole32(ring) };
	_cleanup_buf_ struct buf chunk = BUF_INIT;

	buf_append(&chunk, &h, sizeof(h));
	buf_append(&chunk, r->b.data, r->b.len);
	assert_int_equal(stream_write(&m->writer, CHUNK_MARKS, chunk.data, chunk.len), 0);
	buf_clear(&r->b);
}

/* The n-th event that is no metadata. */
static json_t *mark_at(const struct converted *r, size_t n)
{
	json_t *e;
	size_t i;

	json_array_foreach(json_object_get(r->json, "traceEvents"), i,
			   e) if (*json_string_value(json_object_get(e, "ph")) != 'M' &&
				  n-- == 0) return e;
	return NULL;
}

static void expect(const struct converted *r, size_t n, const char *wanted)
{
	json_t *e = mark_at(r, n), *w = json_loads(wanted, 0, NULL);

	assert_non_null(w);
	if (!e || !json_equal(e, w)) {
		char *text = e ? json_dumps(e, 0) : NULL;

		fail_msg("mark %zu is %s, not %s", n, text ?: "none", wanted);
	}
	json_decref(w);
}

static void make_head(struct maker *m, unsigned word_size, bool big_endian)
{
	maker_init(m, word_size, big_endian, 1024);
	maker_head(m);
	page_begin(m, 100 * S);
	event_number(m, 100 * S, 7, 1);
	page_flush(m, 0, 0);
}

#define ON ",\"pid\":70,\"tid\":71,\"cat\":\"app\",\"ts\":"

/* Two threads, in order of time, of little- and big-endian machines. */
static void rings_are_merged(void **state _unused_)
{
	for (int big = 0; big < 2; big++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_converted_ struct converted r;
		struct records a = { .m = &m }, b = { .m = &m };

		make_head(&m, 8, big);
		producer(&m, 1, 71, MARK_CLOCK_BOOTTIME);
		producer(&m, 2, 72, MARK_CLOCK_BOOTTIME);

		record(&a, 'i', 0, 0, 90 * S); /* of another recording */
		string(&a, MARK_NAME, MARK_STRING, 0, "before");
		epoch(&a, 3, 100 * S, 5);
		define(&a, 1, "work", "app", 0);
		define(&a, 2, "value", "", 0);
		record(&a, 'B', 0, 1, 101 * S);
		number(&a, MARK_ARG, MARK_INT, 2, (uint64_t)-4);
		field(&a, MARK_ARG, MARK_DOUBLE, 0);
		text(&a, "inline");
		maker_u64(&m, &a.b, UINT64_C(0x3fd0000000000000));
		end_field(&a);
		string(&a, MARK_ARG, MARK_JSON, 2, "{\"x\": [1, null]}");
		string(&a, MARK_ARG, MARK_JSON, 2, "{no json");
		flush(&m, 1, 5, &a);
		record(&a, 'E', 0, 0, 103 * S);
		record(&a, MARK_LOST, 0, 0, 104 * S);
		number(&a, MARK_COUNT, MARK_UINT, 0, 7);
		record(&a, 'X', 0, 1, 106 * S);
		number(&a, MARK_DURATION, MARK_UINT, 0, 1 * S);
		number(&a, MARK_THREAD_TIME, MARK_UINT, 0, 9000);
		number(&a, MARK_THREAD_DURATION, MARK_UINT, 0, 2000);
		flush(&m, 1, 12, &a);

		epoch(&b, 2, 100 * S, 0);
		record(&b, 'i', 0, 0, 101 * S); /* of the recording before this one */
		epoch(&b, 4, 102 * S, 0);
		record(&b, 'i', MARK_SCOPE_GLOBAL, 0, 102 * S);
		string(&b, MARK_NAME, MARK_STRING, 0, "hello");
		string(&b, MARK_CATEGORY, MARK_STRING, 0, "app");
		flush(&m, 2, 0, &b);
		maker_end(&m);

		convert(&r, m.fd, NULL);
		expect(&r, 0,
		       "{\"name\":\"work\",\"ph\":\"B\"" ON
		       "101000000,\"args\":{\"value\":\"{no json\",\"inline\":0.25}}");
		expect(&r, 1,
		       "{\"name\":\"hello\",\"ph\":\"i\",\"pid\":70,\"tid\":72,\"cat\":\"app\","
		       "\"ts\":102000000,\"s\":\"g\"}");
		expect(&r, 2, "{\"name\":\"work\",\"ph\":\"E\"" ON "103000000}");
		expect(&r, 3,
		       "{\"name\":\"7 marks lost\",\"ph\":\"i\",\"pid\":70,\"tid\":71,"
		       "\"cat\":\"loss\",\"ts\":104000000,\"s\":\"t\",\"args\":{\"count\":7}}");
		expect(&r, 4,
		       "{\"name\":\"work\",\"ph\":\"X\"" ON
		       "105000000,\"dur\":1000000,\"tts\":7,\"tdur\":2}");
		assert_null(mark_at(&r, 5));
		assert_int_equal(r.out.result.marks, 5);
		assert_int_equal(r.out.result.warning_count, 1);
		assert_non_null(strstr(r.out.result.warnings[0], "dropped 7 marks"));
		buf_deinit(&a.b);
		buf_deinit(&b.b);
	}
}

/* Frames by label and by address come once, each before its use. */
static void stacks_become_frames(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted r;
	struct records a = { .m = &m };
	const char *sf, *parent;
	json_t *frames;

	make_head(&m, 8, false);
	producer(&m, 1, 71, MARK_CLOCK_BOOTTIME);
	epoch(&a, 3, 100 * S, 0);
	define(&a, 1, "main", "app", 0);
	define(&a, 2, "work", "app", 1);
	for (uint64_t i = 0; i < 2; i++) {
		record(&a, 'i', 0, 1, (101 + i) * S);
		number(&a, MARK_STACK, MARK_LABEL, 0, 2);
		record(&a, 'P', 0, 1, (101 + i) * S);
		field(&a, MARK_STACK, MARK_ADDRESSES, 0);
		maker_u64(&m, &a.b, 0x1000);
		maker_u64(&m, &a.b, 0x2000);
		end_field(&a);
	}
	flush(&m, 1, 0, &a);
	maker_end(&m);
	convert(&r, m.fd, NULL);
	frames = json_object_get(r.json, "stackFrames");
	assert_int_equal(json_object_size(frames), 4);
	sf = json_string_value(json_object_get(mark_at(&r, 0), "sf"));
	parent = json_string_value(json_object_get(json_object_get(frames, sf), "parent"));
	assert_string_equal(json_string_value(json_object_get(json_object_get(frames, sf), "name")),
			    "work");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(frames, parent), "name")),
		"main");
	sf = json_string_value(json_object_get(mark_at(&r, 3), "sf"));
	assert_string_equal(json_string_value(json_object_get(json_object_get(frames, sf), "name")),
			    "0x2000");
	assert_int_equal(r.out.result.marks, 4);
	assert_int_equal(r.out.result.warning_count, 0);
	buf_deinit(&a.b);
}

/* A mark between two of the kernel's events stays between them, whatever clock its thread has. */
static void clocks_are_converted(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted r;
	struct records a = { .m = &m };
	Traced__Capture__Clocks clocks = TRACED__CAPTURE__CLOCKS__INIT;
	Traced__Capture__ClockReading raw = TRACED__CAPTURE__CLOCK_READING__INIT;

	make_head(&m, 8, false);
	raw.clock = CLOCK_MONOTONIC_RAW;
	clocks.n_readings = 1;
	clocks.readings = (Traced__Capture__ClockReading *[]){ &raw };
	for (uint64_t t = 100; t <= 200; t += 100) {
		raw.boot_before_ns = t * S;
		raw.boot_after_ns = t * S + 30;
		/* It runs 100 ppm slow. */
		raw.value_ns = t * S - (t - 100) * 100000 - 50 * S + 15;
		assert_int_equal(stream_write_message(&m.writer, CHUNK_CLOCKS, &clocks.base), 0);
	}
	producer(&m, 1, 71, CLOCK_MONOTONIC_RAW);
	producer(&m, 2, 72, 99);
	epoch(&a, 3, 50 * S, 0);
	record(&a, 'i', 0, 0, 60 * S - 1000000 + 15);
	flush(&m, 1, 0, &a);
	epoch(&a, 3, 50 * S, 0);
	record(&a, 'i', 0, 0, 60 * S);
	flush(&m, 2, 0, &a);
	maker_end(&m);
	convert(&r, m.fd, NULL);
	assert_true(json_number_value(json_object_get(mark_at(&r, 1), "ts")) == 110000000.015);
	assert_true(json_number_value(json_object_get(mark_at(&r, 0), "ts")) == 60000000);
	assert_int_equal(r.out.result.warning_count, 2);
	assert_non_null(strstr(r.out.result.warnings[0], "1 thread are taken as they are"));
	assert_non_null(strstr(r.out.result.warnings[1], "only within 11 microseconds"));
	assert_int_equal(json_integer_value(json_object_get(
				 json_object_get(json_object_get(r.json, "otherData"), "marks"),
				 "bound_ns")),
			 10015);
	buf_deinit(&a.b);
}

static void usual(struct records *a)
{
	epoch(a, 3, 100 * S, 0);
	define(a, 1, "main", "app", 0);
	define(a, 2, "work", "app", 1);
	record(a, 'O', 0, 2, 101 * S);
	number(a, MARK_ID, MARK_POINTER, 0, 0x1000);
	string(a, MARK_BASE_TYPE, MARK_STRING, 0, "base");
	number(a, MARK_ARG, MARK_REF, 1, 0x1000);
	record(a, 'X', 0, 2, 102 * S);
	number(a, MARK_DURATION, MARK_UINT, 0, 500);
	field(a, MARK_END_STACK, MARK_ADDRESSES, 0);
	maker_u64(a->m, &a->b, 0x1000);
	end_field(a);
	record(a, 'c', 0, 0, 103 * S);
	string(a, MARK_SYNC_ID, MARK_STRING, 0, "x");
	number(a, MARK_ISSUED, MARK_UINT, 0, 102 * S);
	record(a, '=', 0, 2, 104 * S);
	number(a, MARK_ID_GLOBAL, MARK_UINT, 0, 1);
	number(a, MARK_LINKED_ID, MARK_UINT, 0, 2);
	string(a, MARK_ARG, MARK_JSON, 2, "[true]");
}

/* With each byte changed, nothing is read beyond its record; a sanitizer would see it. */
static void nothing_is_believed(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	struct records a = { .m = &m };

	make_head(&m, 8, false);
	usual(&a);
	for (size_t at = 0; at < a.b.len; at++) {
		static const uint8_t values[] = { 0, 1, 2, 0x7f, 0x80, 0xff };

		for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
			struct mark_decode_shared shared = MARK_DECODE_SHARED_INIT;
			_cleanup_(mark_decode_deinit) struct mark_decode d;
			uint8_t *copy = malloc(a.b.len);
			size_t from = 0, size;
			struct mark mark;
			int again = 0;

			memcpy(copy, a.b.data, a.b.len);
			copy[at] = values[v];
			mark_decode_init(&d, &shared, false);
			while ((size = mark_record_size(&d, copy + from, a.b.len - from))) {
				int r = mark_decode(&d, copy + from, size, &mark);

				assert_true(r >= 0 || r == -EBADMSG);
				if (r < 0)
					break;
				/* The loop must end. */
				assert_true(again < 100);
				again = r == DECODED_FRAME ? again + 1 : 0;
				from += r == DECODED_FRAME ? 0 : size;
			}
			free(copy);
			mark_decode_shared_deinit(&shared);
		}
	}
	buf_deinit(&a.b);
}

/* A mark after the end is left out, and does not extend the trace. */
static void impossible_marks_are_left_out(void **state _unused_)
{
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted r;
	struct records a = { .m = &m };

	make_head(&m, 8, false);
	producer(&m, 1, 71, MARK_CLOCK_BOOTTIME);
	epoch(&a, 3, 100 * S, 0);
	record(&a, 'i', 0, 0, 110 * S);
	record(&a, 'i', 0, 0, 111 * S);
	number(&a, MARK_TIME, MARK_UINT, 0, UINT64_MAX / 2);
	record(&a, 'X', 0, 0, 112 * S);
	number(&a, MARK_DURATION, MARK_UINT, 0, UINT64_MAX);
	record(&a, 'i', 0, 0, 130 * S);
	record(&a, 'i', 0, 0, 113 * S);
	flush(&m, 1, 0, &a);
	end.start_boot_ns = 100 * S;
	end.boot_ns = 120 * S;
	assert_int_equal(stream_write_message(&m.writer, CHUNK_END, &end.base), 0);
	convert(&r, m.fd, NULL);
	assert_int_equal(r.out.result.marks, 3);
	assert_true(json_number_value(json_object_get(mark_at(&r, 0), "ts")) == 110e6);
	assert_true(json_number_value(json_object_get(mark_at(&r, 2), "ts")) == 113e6);
	assert_false(r.out.result.incomplete);
	assert_int_equal(r.out.result.warning_count, 1);
	assert_non_null(
		strstr(r.out.result.warnings[0], "2 marks are left out: they say that they "));
	buf_deinit(&a.b);
}

/* The counts are the program's: they may be anything. */
static void impossible_losses_are_cut(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	struct records a = { .m = &m }, b = { .m = &m };
	_cleanup_converted_ struct converted r;

	make_head(&m, 8, false);
	producer(&m, 1, 71, MARK_CLOCK_BOOTTIME);
	producer(&m, 2, 72, MARK_CLOCK_BOOTTIME);
	epoch(&a, 4, 100 * S, 0);
	record(&a, MARK_LOST, 0, 0, 100 * S + 500);
	number(&a, MARK_COUNT, MARK_UINT, 0, UINT64_MAX);
	flush(&m, 1, 3, &a);
	epoch(&b, 4, 100 * S, 7);
	flush(&m, 2, UINT64_C(1) << 60, &b);
	maker_end(&m);
	convert(&r, m.fd, NULL);
	expect(&r, 0,
	       "{\"name\":\"500 marks lost at most: its program claims more\",\"ph\":\"i\","
	       "\"pid\":70,\"tid\":71,\"cat\":\"loss\",\"ts\":100000000.500,\"s\":\"t\","
	       "\"args\":{\"count\":500}}");
	assert_int_equal(r.out.result.warning_count, 2);
	assert_non_null(strstr(r.out.result.warnings[1], "2 threads claim more lost marks"));
	buf_deinit(&a.b);
	buf_deinit(&b.b);
}

/* A chunk of an unknown ring, or a truncated one, is lost alone. */
static void damage_is_reported(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted r;
	struct records a = { .m = &m };

	make_head(&m, 8, false);
	usual(&a);
	flush(&m, 9, 0, &a);
	producer(&m, 1, 71, MARK_CLOCK_BOOTTIME);
	producer(&m, 1, 71, MARK_CLOCK_BOOTTIME);
	usual(&a);
	a.b.len -= 8;
	flush(&m, 1, 0, &a);
	record(&a, 'i', 0, 1, 110 * S);
	record(&a, 'i', 0, 77, 111 * S); /* an unknown label */
	flush(&m, 1, 0, &a);
	maker_end(&m);
	convert(&r, m.fd, NULL);
	assert_true(r.out.result.incomplete);
	assert_int_equal(r.out.result.warning_count, 4);
	assert_non_null(strstr(r.out.result.warnings[3], "names of marks are missing 1 time:"));
	assert_non_null(strstr(r.out.result.warnings[0], "was not announced"));
	assert_non_null(strstr(r.out.result.warnings[2], "1 chunk of marks makes no sense"));
	assert_string_equal(json_string_value(json_object_get(mark_at(&r, 2), "name")), "main");
	buf_deinit(&a.b);
}

/* The format's array form: events only. */
static void an_array_has_events_alone(void **state _unused_)
{
	_cleanup_exported_ struct exported text = { .options = { .format = "txt",
								 .json_array = true } };
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted r;
	struct records a = { .m = &m };
	unsigned seen = 0;
	json_t *e;
	size_t i;

	make_head(&m, 8, false);
	producer(&m, 1, 71, MARK_CLOCK_BOOTTIME);
	usual(&a);
	flush(&m, 1, 0, &a);
	maker_end(&m);
	convert(&r, m.fd, &(struct export_options){ .json_array = true });
	assert_true(json_is_array(r.json));
	json_array_foreach(r.json, i, e)
	{
		const char *ph = json_string_value(json_object_get(e, "ph"));

		seen |= *ph == 'X' ? 1 : *ph == 'O' ? 2 : *ph == 'M' ? 4 : 0;
		assert_true(*ph != 'c');
		assert_null(json_object_get(e, "esf"));
	}
	assert_int_equal(seen, 7);
	assert_non_null(strstr(r.out.result.warnings[0], "no place for the kernel's text"));
	try_export(&text, m.fd);
	assert_int_equal(text.code, -EINVAL);
	buf_deinit(&a.b);
}

/* The marks of one thread, in order. */
static char *marks_of(const struct converted *r, int32_t tid)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	json_t *e;
	size_t i;

	json_array_foreach(json_object_get(r->json, "traceEvents"), i, e)
	{
		char *one;

		if (json_integer_value(json_object_get(e, "tid")) != tid)
			continue;
		one = json_dumps(e, JSON_COMPACT);
		buf_puts(&text, one);
		buf_putc(&text, '\n');
		free(one);
	}
	return strdup(buf_string(&text));
}

#define THREADS 6

/* Threads that start one after the other and mark at random, in random chunks and flushes. */
static void make_marks_at_random(struct maker *m, unsigned seed)
{
	struct records rings[THREADS] = { 0 };
	unsigned there = 0, state = seed;
	uint64_t time = 101 * S;

	make_head(m, 8, seed % 2);
	for (unsigned n = 0; n < 2000; n++) {
		struct records *a;
		unsigned which;

		state = state * 1103515245 + 12345;
		which = (state >> 16) % 400;
		if (there < THREADS && n >= there * 200) {
			a = &rings[there++];
			a->m = m;
			producer(m, there, (int32_t)(70 + there), MARK_CLOCK_BOOTTIME);
			epoch(a, 3, time, 0);
			define(a, 1, "work", "app", 0);
			define(a, 2, "deeper", "app", 1);
		}
		a = &rings[which % there];
		time += which;
		record(a, (uint8_t) "BEiXP"[which % 5], 0, 1, time);
		if (which % 5 == 3)
			number(a, MARK_DURATION, MARK_UINT, 0, 7);
		if (which % 5 == 4)
			number(a, MARK_STACK, MARK_LABEL, 0, 2);
		if (which % 7 == 0)
			flush(m, (uint32_t)(a - rings) + 1, 0, a);
		if (which < 6)
			assert_int_equal(stream_write(&m->writer, CHUNK_FLUSH, "", 0), 0);
	}
	for (unsigned i = 0; i < there; i++) {
		flush(m, i + 1, 0, &rings[i]);
		buf_deinit(&rings[i].b);
	}
	maker_end(m);
}

/* For any slices nothing is missing, doubled or out of order, and space is freed. */
static void followed_marks_are_the_same(void **state _unused_)
{
	for (unsigned seed = 1; seed < 20; seed++) {
		_cleanup_close_ int to = memory_file("", 0);
		struct feed feed = { .to = to, .seed = seed, .slice_max = seed % 2 ? 4000 : 500 };
		const struct export_follow follow = { .wait = give_slice, .userdata = &feed };
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_converted_ struct converted whole, followed;

		make_marks_at_random(&m, seed);
		feed_begin(&feed, m.fd);
		convert(&whole, m.fd, NULL);
		convert(&followed, to, &(struct export_options){ .follow = &follow });
		assert_int_equal(followed.out.result.marks, whole.out.result.marks);
		assert_int_equal(followed.out.result.warning_count, whole.out.result.warning_count);
		assert_true(json_equal(json_object_get(followed.json, "stackFrames"),
				       json_object_get(whole.json, "stackFrames")));
		for (int32_t tid = 71; tid <= 70 + THREADS; tid++) {
			_cleanup_free_ char *a = marks_of(&whole, tid),
					    *b = marks_of(&followed, tid);

			assert_true(strlen(a) > 1000);
			assert_string_equal(a, b);
		}
		assert_true(feed.gone > feed.size / 2);
	}
}

/* A program writes the outer one last; readers take the first of equal begins for it. */
static void outer_slices_begin_first(void **state _unused_)
{
	static const char *const begins[] = { "101000000",     "101500000", "100999999.999",
					      "100999999.998", "104000000", "103999999.999" };
	static const struct {
		uint8_t phase;
		unsigned end, duration;
	} marks[] = {
		{ 'X', 102, 1000 }, { 'X', 102, 500 }, { 'X', 103, 2000 },
		{ 'X', 103, 2000 }, { 'B', 104, 0 },   { 'X', 106, 2000 },
	};
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted r;
	struct records a = { .m = &m };

	make_head(&m, 8, false);
	producer(&m, 1, 71, MARK_CLOCK_BOOTTIME);
	epoch(&a, 3, 100 * S, 0);
	define(&a, 1, "work", "app", 0);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		record(&a, marks[i].phase, 0, 1, marks[i].end * S);
		if (marks[i].phase == 'X')
			number(&a, MARK_DURATION, MARK_UINT, 0, marks[i].duration * (S / 1000));
		if (marks[i].phase == 'B')
			record(&a, 'E', 0, 0, 105 * S);
	}
	flush(&m, 1, 0, &a);
	maker_end(&m);
	convert(&r, m.fd, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		json_t *e = mark_at(&r, i + (i > 4));
		double dur = json_number_value(json_object_get(e, "dur"));
		double ts = json_number_value(json_object_get(e, "ts"));

		assert_true(ts == strtod(begins[i], NULL));
		assert_true(marks[i].phase == 'B' ||
			    (uint64_t)((ts + dur) * 1000 + 0.5) == marks[i].end * S);
	}
	buf_deinit(&a.b);
}

/* Whatever traced_write() is given is kept, or its loss is reported. */
static void other_phases_are_kept_or_reported(void **state _unused_)
{
	static const char phases[] = "ISFZ(";
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted r;
	struct records a = { .m = &m };

	make_head(&m, 8, false);
	producer(&m, 1, 71, MARK_CLOCK_BOOTTIME);
	epoch(&a, 3, 100 * S, 0);
	define(&a, 1, "work", "app", 0);
	for (size_t i = 0; phases[i]; i++) {
		record(&a, (uint8_t)phases[i], MARK_SCOPE_THREAD, 1, (101 + i) * S);
		if (strchr("SF", phases[i]))
			number(&a, MARK_ID, MARK_UINT, 0, 5);
	}
	flush(&m, 1, 0, &a);
	maker_end(&m);
	convert(&r, m.fd, NULL);
	expect(&r, 0, "{\"name\":\"work\",\"ph\":\"i\"" ON "101000000,\"s\":\"t\"}");
	expect(&r, 1, "{\"name\":\"work\",\"ph\":\"b\"" ON "102000000,\"id\":\"0x5\"}");
	expect(&r, 2, "{\"name\":\"work\",\"ph\":\"e\"" ON "103000000,\"id\":\"0x5\"}");
	assert_null(mark_at(&r, 3));
	assert_int_equal(r.out.result.warning_count, 2);
	assert_non_null(strstr(r.out.result.warnings[0], "1 mark is left out, as Trace Viewer"));
	assert_non_null(strstr(r.out.result.warnings[0], "a context without an id"));
	assert_non_null(strstr(r.out.result.warnings[1], "does not know its phase"));
	buf_deinit(&a.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_are_merged),
		cmocka_unit_test(impossible_losses_are_cut),
		cmocka_unit_test(outer_slices_begin_first),
		cmocka_unit_test(other_phases_are_kept_or_reported),
		cmocka_unit_test(stacks_become_frames),
		cmocka_unit_test(clocks_are_converted),
		cmocka_unit_test(nothing_is_believed),
		cmocka_unit_test(impossible_marks_are_left_out),
		cmocka_unit_test(damage_is_reported),
		cmocka_unit_test(an_array_has_events_alone),
		cmocka_unit_test(followed_marks_are_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
