/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Marks of applications, from their files to the JSON. */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/io.h"
#include "formats/formats.h"
#include "make_stream.h"
#include "marks/clock_map.h"
#include "marks/trace_file.h"
#include "memory_file.h"
#include "occurrences.h"

#define S UINT64_C(1000000000)

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
static void files_are_told_apart(void **state _unused_)
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

/* Interpolates between points, uses the nearest one beyond them; a step is no drift. */
static void clocks_are_mapped(void **state _unused_)
{
	struct clock_map map = { 0 };
	struct clock_sum sum;
	uint64_t bound;

	assert_int_equal(
		clock_map_add(&map, &(struct clock_point){ 2 * S, 12 * S + 200, 30, NULL }), 0);
	assert_int_equal(clock_map_add(&map, &(struct clock_point){ 1 * S, 11 * S, 50, NULL }), 0);
	assert_int_equal(clock_map_add(&map, &(struct clock_point){ 3 * S, 100 * S, 40, NULL }), 0);
	clock_map_seal(&map);
	assert_int_equal(clock_map_apply(&map, 1 * S, &bound), 11 * S);
	assert_int_equal(bound, 50);
	assert_int_equal(clock_map_apply(&map, S + S / 2, &bound), 11 * S + S / 2 + 100);
	assert_int_equal(clock_map_apply(&map, S / 2, &bound), 10 * S + S / 2);
	assert_int_equal(clock_map_apply(&map, 4 * S, &bound), 101 * S);
	assert_int_equal(bound, 40);
	assert_int_equal(clock_map_apply(&map, 2 * S + 10, &bound), 12 * S + 210);
	assert_int_equal(bound, 40 + 87 * S - 200);
	assert_int_equal(clock_map_apply(&map, 3 * S - 10, &bound), 100 * S - 10);
	clock_map_sum(&map, &sum);
	assert_int_equal(sum.offset, 10 * S);
	assert_int_equal(sum.bound, 50);
	clock_map_deinit(&map);

	assert_int_equal(clock_map_add(&map, &(struct clock_point){ 5 * S, 1 * S, 0, NULL }), 0);
	clock_map_seal(&map);
	assert_int_equal(clock_map_apply(&map, S, &bound), 0);
	clock_map_deinit(&map);
}

/* A recording from 100 s to 110 s of BOOTTIME, MONOTONIC 3 s behind; a sync mark at 105 s. */
static void make_recording(struct maker *m)
{
	Traced__Capture__Clocks clocks = TRACED__CAPTURE__CLOCKS__INIT;
	Traced__Capture__ClockReading mono = TRACED__CAPTURE__CLOCK_READING__INIT;
	Traced__Capture__ClockReading real = TRACED__CAPTURE__CLOCK_READING__INIT;

	maker_init(m, 8, false, 1024);
	maker_head(m);
	mono.clock = CLOCK_MONOTONIC;
	real.clock = CLOCK_REALTIME;
	for (uint32_t phase = 0; phase < 3; phase += 2) {
		mono.boot_before_ns = (phase ? 110 : 100) * S;
		mono.boot_after_ns = mono.boot_before_ns + 40;
		mono.value_ns = mono.boot_before_ns + 20 - 3 * S;
		real.boot_before_ns = mono.boot_before_ns;
		real.boot_after_ns = mono.boot_before_ns + 100000;
		real.value_ns = real.boot_before_ns + 50000 + 1000 * S;
		clocks.phase = phase;
		clocks.n_readings = 2;
		clocks.readings = (Traced__Capture__ClockReading *[]){ &mono, &real };
		assert_int_equal(stream_write_message(&m->writer, CHUNK_CLOCKS, &clocks.base), 0);
	}
	page_begin(m, 101 * S);
	event_number(m, 101 * S, 7, 1);
	event_print_mark(m, 105 * S, 7, "trace_event_clock_sync: name=lab_1");
	event_number(m, 109 * S, 7, 2);
	page_end(m, 0);
	maker_flush(m, 0, BUFFER_MAIN, 0);
	maker_end(m);
}

struct merged {
	struct export_result result;
	struct error err;
	json_t *json;
	char *text;
};

static void merged_deinit(struct merged *m)
{
	export_result_deinit(&m->result);
	error_deinit(&m->err);
	json_decref(m->json);
	free(m->text);
}
#define _cleanup_merged_ _cleanup_(merged_deinit)

static void merge(struct merged *m, const char *text, size_t len, int clock)
{
	_cleanup_(maker_deinit) struct maker maker;
	_cleanup_close_ int out = memory_file("", 0), app = memory_file(text, len);
	struct export_merge file = { .fd = app, .name = "app.json", .clock = clock };
	struct export_options o = { .format = "json", .merges = &file, .merge_count = 1 };
	json_error_t why;
	struct stat st;

	*m = (struct merged){ 0 };
	make_recording(&maker);
	assert_int_equal(export_stream(maker.fd, out, &o, &m->result, &m->err), 0);
	assert_int_equal(fstat(out, &st), 0);
	m->text = calloc(1, (size_t)st.st_size + 1);
	assert_int_equal(pread_full(out, m->text, (size_t)st.st_size, 0), st.st_size);
	m->json = json_loadb(m->text, (size_t)st.st_size, JSON_ALLOW_NUL, &why);
	if (!m->json)
		fail_msg("%s at %d: %s", why.text, why.position, m->text);
}

static json_t *find_event(const struct merged *m, const char *name, const char *ph)
{
	json_t *e;
	size_t i;

	json_array_foreach(
		json_object_get(m->json, "traceEvents"), i,
		e) if (!strcmp(json_string_value(json_object_get(e, "ph")), ph) &&
		       (!name || !strcmp(json_string_value(json_object_get(e, "name")) ?: "",
					 name))) return e;
	return NULL;
}

/* Each member of every event of the matrix, in the file that is written. */
static void every_phase_is_kept(void **state _unused_)
{
	static const char old[] = "ISTF", new[] = "ibne";
	_cleanup_buf_ struct buf whole;
	_cleanup_merged_ struct merged m;
	json_t *app, *e;
	size_t i, sync = 0;

	load_matrix(&whole);
	merge(&m, whole.data, whole.len, CLOCK_BOOTTIME);
	app = json_loadb(whole.data, whole.len, 0, NULL);
	json_array_foreach(json_object_get(app, "traceEvents"), i, e)
	{
		const char *ph = json_string_value(json_object_get(e, "ph"));
		const char *name = json_string_value(json_object_get(e, "name")), *was;
		char phase[2] = { *ph, 0 };
		json_t *out = NULL, *o, *value;
		const char *key;
		size_t j;

		was = strchr(old, *ph);
		if (was)
			phase[0] = new[was - old];
		if (*ph == 'c') {
			sync++;
			continue;
		}
		json_array_foreach(json_object_get(m.json, "traceEvents"), j, o)
		{
			json_t *a = json_object_get(o, "ts"), *b = json_object_get(e, "ts");
			json_t *n = json_object_get(o, "name");

			if (!strcmp(json_string_value(json_object_get(o, "ph")), phase) &&
			    json_number_value(a) == json_number_value(b) &&
			    (!name || *ph == 'E' || !strcmp(json_string_value(n), name)) &&
			    json_integer_value(json_object_get(o, "pid")) ==
				    json_integer_value(json_object_get(e, "pid")))
				out = o;
		}
		if (!out)
			fail_msg("%s %s is not there", ph, name ?: "");
		assert_non_null(json_object_get(out, "cat"));
		assert_non_null(json_object_get(out, "tid"));
		json_object_foreach(e, key, value)
		{
			o = json_object_get(out, key);
			if (!strcmp(key, "ph") || !strcmp(key, "cat") || !strcmp(key, "stack"))
				continue;
			if (!strcmp(key, "id") || !strcmp(key, "sf") || !strcmp(key, "esf"))
				assert_true(json_is_string(o));
			else if (json_is_number(value))
				assert_true(json_number_value(value) == json_number_value(o));
			else if (!json_equal(o, value))
				fail_msg("%s of %s %s differs", key, ph, name ?: "");
		}
	}
	assert_int_equal(sync, 1);
	json_decref(app);
	assert_string_equal(json_string_value(json_object_get(m.json, "displayTimeUnit")), "ms");
	assert_string_equal(json_string_value(json_object_get(m.json, "controllerTraceDataKey")),
			    "traceEvents");
	assert_int_equal(json_array_size(json_object_get(m.json, "samples")), 2);
	assert_int_equal(json_object_size(json_object_get(m.json, "stackFrames")), 5);
	assert_string_equal(json_string_value(json_object_get(find_event(&m, "part", "B"), "sf")),
			    "stack2");
	assert_int_equal(m.result.marks, 52);
}

/* Trace Viewer rejects a file with a sample that has no frame. */
static void every_sample_has_a_frame(void **state _unused_)
{
	static const char text[] =
		"{\"traceEvents\":[],\"stackFrames\":{\"a\":{\"name\":\"main\",\"category\":\"m\"}}"
		","
		"\"samples\":[{\"cpu\":0,\"tid\":1,\"ts\":1,\"name\":\"x\",\"weight\":1},"
		"{\"cpu\":0,\"tid\":1,\"ts\":2,\"name\":\"x\",\"weight\":1},"
		"{\"cpu\":0,\"tid\":1,\"ts\":3,\"name\":\"x\",\"sf\":\"a\",\"weight\":1}]}";
	_cleanup_merged_ struct merged m = { 0 };
	json_t *samples, *frames;

	merge(&m, text, strlen(text), CLOCK_BOOTTIME);
	samples = json_object_get(m.json, "samples");
	frames = json_object_get(m.json, "stackFrames");
	assert_int_equal(json_array_size(samples), 3);
	assert_int_equal(json_object_size(frames), 2);
	for (size_t i = 0; i < json_array_size(samples); i++) {
		json_t *sf = json_object_get(json_array_get(samples, i), "sf");
		json_t *frame = json_object_get(frames, json_string_value(sf));

		assert_non_null(frame);
		assert_string_equal(json_string_value(json_object_get(frame, "name")),
				    i == 2 ? "main" : "no stack");
	}
}

/* The examples of the format's description are taken whole. */
static void examples_are_taken(void **state _unused_)
{
	DIR *dir = opendir(TEST_DATA "/marks/examples");
	struct dirent *e;
	unsigned count = 0;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		_cleanup_buf_ struct buf text = BUF_INIT;
		_cleanup_reading_ struct reading r = { 0 };
		_cleanup_merged_ struct merged m = { 0 };
		uint64_t events;

		if (e->d_name[0] == '.')
			continue;
		assert_int_equal(read_file_at(dirfd(dir), e->d_name, 1 << 20, &text), 0);
		events = occurrences(buf_string(&text), "\"ph\"");
		read_bytes(&r, text.data, text.len);
		if (r.code < 0 || r.file.left_out || r.file.cut)
			fail_msg("%s: %s", e->d_name, r.err.message ?: r.file.why_left_out);
		assert_true(r.file.count >= events && events > 0);
		merge(&m, text.data, text.len, CLOCK_BOOTTIME);
		assert_int_equal(m.result.marks, r.file.count - r.file.sync_count);
		count++;
	}
	closedir(dir);
	assert_true(count >= 16);
}

/*
 * An end takes its category from what is open: with another one a reader would end something else.
 */
static void ends_end_what_is_open(void **state _unused_)
{
	static const char app[] =
		"[{\"ph\":\"E\",\"ts\":1,\"pid\":1,\"tid\":2},"
		"{\"name\":\"a\",\"cat\":\"x\",\"ph\":\"B\",\"ts\":2,\"pid\":1,\"tid\":2},"
		"{\"name\":\"other\",\"cat\":\"y\",\"ph\":\"E\",\"ts\":3,\"pid\":1,\"tid\":2},"
		"{\"ph\":\"E\",\"ts\":4,\"pid\":1,\"tid\":2},"
		"{\"ph\":\"E\",\"ts\":4,\"pid\":1,\"tid\":3}]";
	_cleanup_merged_ struct merged m;
	json_t *end;

	merge(&m, app, sizeof(app) - 1, CLOCK_BOOTTIME);
	end = find_event(&m, NULL, "E");
	assert_non_null(end);
	assert_true(json_number_value(json_object_get(end, "ts")) == 3);
	assert_string_equal(json_string_value(json_object_get(end, "cat")), "x");
	assert_null(json_object_get(end, "name"));
	assert_int_equal(m.result.marks, 2);
	assert_int_equal(m.result.warning_count, 2);
	assert_non_null(strstr(m.result.warnings[0], "3 marks end what never began"));
	assert_non_null(strstr(m.result.warnings[1], "before or after the recording"));
}

static double ts_of(const struct merged *m)
{
	return json_number_value(json_object_get(find_event(m, "a", "i"), "ts"));
}

static const char *clock_of(const struct merged *m, int64_t *offset, int64_t *bound)
{
	json_t *row =
		json_array_get(json_object_get(json_object_get(m->json, "otherData"), "merged"), 0);

	*offset = json_integer_value(json_object_get(row, "offset_ns"));
	*bound = json_integer_value(json_object_get(row, "bound_ns"));
	return json_string_value(json_object_get(row, "clock"));
}

/* By the named clock, by syncs, and otherwise MONOTONIC. */
static void clocks_are_tied(void **state _unused_)
{
	static const char mono[] =
		"[{\"name\":\"a\",\"ph\":\"i\",\"ts\":101000000.5,\"pid\":1,\"tid\":2}]";
	static const char real[] =
		"[{\"name\":\"a\",\"ph\":\"i\",\"ts\":1104000000.5,\"pid\":1,\"tid\":2}]";
	/* Its own clock: issued at 5 s, answered 6 us later; received by the kernel at 105 s. */
	static const char sync[] =
		"[{\"name\":\"a\",\"ph\":\"i\",\"ts\":4000003,\"pid\":1,\"tid\":2},"
		"{\"name\":\"clock_sync\",\"ph\":\"c\",\"ts\":5000006,\"args\":{\"sync_id\":\"lab_"
		"1\","
		"\"issue_ts\":5000000}}]";
	int64_t offset, bound;

	{
		_cleanup_merged_ struct merged m;

		merge(&m, mono, sizeof(mono) - 1, -1);
		assert_true(ts_of(&m) == 104000000.5);
		assert_string_equal(clock_of(&m, &offset, &bound), "MONOTONIC");
		assert_int_equal(offset, 3 * S);
		assert_int_equal(bound, 20);
		assert_int_equal(m.result.warning_count, 0);
		assert_false(m.result.incomplete);
	}
	{
		_cleanup_merged_ struct merged m;

		merge(&m, real, sizeof(real) - 1, CLOCK_REALTIME);
		assert_true(ts_of(&m) == 104000000.5);
		assert_string_equal(clock_of(&m, &offset, &bound), "REALTIME");
		assert_int_equal(bound, 50000);
		assert_int_equal(m.result.warning_count, 1);
		assert_non_null(strstr(m.result.warnings[0], "within 50 microseconds"));
	}
	{
		_cleanup_merged_ struct merged m;
		json_t *c, *args;

		merge(&m, sync, sizeof(sync) - 1, -1);
		assert_true(ts_of(&m) == 104000000);
		assert_string_equal(clock_of(&m, &offset, &bound), "clock_sync");
		assert_int_equal(offset, 100 * S - 3000);
		/* A single tie gives no rate: one second away the error may be 500 us. */
		assert_int_equal(bound, 503000);
		assert_non_null(strstr(m.result.warnings[0], "a second sync would tell"));
		/* Its mark is in the text, with its only counterpart. */
		assert_non_null(strstr(m.text, "trace_event_clock_sync: name=lab_1\\n"));
		c = find_event(&m, "clock_sync", "c");
		args = json_object_get(c, "args");
		assert_string_equal(json_string_value(json_object_get(args, "sync_id")), "lab_1");
		assert_int_equal(json_integer_value(json_object_get(args, "issue_ts")), 104999997);
		assert_int_equal(json_integer_value(json_object_get(c, "ts")), 105000003);
	}
}

/* A bad file is left out with a warning; the recording is kept. */
static void a_bad_file_is_told_of(void **state _unused_)
{
	static const char *const files[] = { "", "nonsense", "[{\"ts\":NaN}]",
					     "{\"traceEvents\":[{" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_merged_ struct merged m;

		merge(&m, files[i], strlen(files[i]), -1);
		assert_true(m.result.incomplete);
		assert_int_equal(m.result.warning_count, 1);
		assert_non_null(strstr(m.result.warnings[0], "app.json: "));
		assert_int_equal(m.result.events, 3);
	}
}

/* Names of any bytes: merging must not pass invalid bytes on to the output. */
static void any_bytes_become_json(void **state _unused_)
{
	static const char app[] =
		"[{\"name\":\"a\xff\xc3\xa4\\u0000\\ud800\x01\",\"ph\":\"i\",\"ts\":1,"
		"\"pid\":1,\"cname\":\"no such colour\",\"args\":{\"\xfe\":\"\\u0007\"}}]";
	_cleanup_merged_ struct merged m;
	json_t *e;

	merge(&m, app, sizeof(app) - 1, -1);
	e = find_event(&m, NULL, "i");
	assert_non_null(e);
	assert_memory_equal(json_string_value(json_object_get(e, "name")),
			    "a\xef\xbf\xbd\xc3\xa4\0\xef\xbf\xbd\x01", 11);
	assert_null(json_object_get(e, "cname"));
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(e, "args"), "\xef\xbf\xbd")),
		"\a");
}

static void a_file_without_events_is_said(void **state _unused_)
{
	static const char *const texts[] = { "{}", "[]", "{\"traceEvents\":5}",
					     "{\"name\":\"x\"}" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_merged_ struct merged m;

		merge(&m, texts[i], strlen(texts[i]), -1);
		assert_int_equal(m.result.warning_count, 1);
		assert_non_null(strstr(m.result.warnings[0], "not one event"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_told_apart),
		cmocka_unit_test(times_are_exact),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(gzip_is_read),
		cmocka_unit_test(runs_are_merged),
		cmocka_unit_test(scratch_is_not_believed),
		cmocka_unit_test(clocks_are_mapped),
		cmocka_unit_test(every_phase_is_kept),
		cmocka_unit_test(every_sample_has_a_frame),
		cmocka_unit_test(ends_end_what_is_open),
		cmocka_unit_test(examples_are_taken),
		cmocka_unit_test(clocks_are_tied),
		cmocka_unit_test(a_bad_file_is_told_of),
		cmocka_unit_test(a_file_without_events_is_said),
		cmocka_unit_test(any_bytes_become_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
