/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Marks of applications, from their files to the JSON. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/io.h"
#include "converted.h"
#include "make_stream.h"
#include "marks/clock_map.h"
#include "marks/trace_file.h"
#include "memory_file.h"
#include "occurrences.h"

#define S UINT64_C(1000000000)

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

	maker_begin(m, 1024);
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
	maker_finish(m);
}

static void merge(struct converted *c, const char *text, size_t len, int clock)
{
	_cleanup_(maker_deinit) struct maker maker;
	_cleanup_close_ int app = memory_file(text, len);
	struct export_merge file = { .fd = app, .name = "app.json", .clock = clock };

	make_recording(&maker);
	convert(c, maker.fd, &(struct export_options){ .merges = &file, .merge_count = 1 });
}

static json_t *find_event(const struct converted *m, const char *name, const char *ph)
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
	static const char old[] = "ISTF", new[] = "ibbe";
	_cleanup_buf_ struct buf whole = BUF_INIT;
	_cleanup_converted_ struct converted m;
	json_t *app, *e;
	size_t i, sync = 0;

	assert_int_equal(read_file_at(AT_FDCWD, TEST_DATA "/marks/phases.json", 1 << 20, &whole),
			 0);
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
		if (*ph == 'T')
			name = "old:one";
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
			if (!strcmp(key, "ph") || !strcmp(key, "cat") || !strcmp(key, "stack") ||
			    (*ph == 'T' && !strcmp(key, "name")))
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
			    "0:stack2");
	assert_int_equal(m.out.result.marks, 52);
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
	_cleanup_converted_ struct converted m = { 0 };
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
		_cleanup_(trace_file_deinit) struct trace_file file = { 0 };
		_cleanup_error_ struct error err = ERROR_INIT;
		struct scratch scratch = { .fd = -EBADF };
		_cleanup_close_ int fd = -EBADF;
		_cleanup_converted_ struct converted m = { 0 };
		uint64_t events;

		if (e->d_name[0] == '.')
			continue;
		assert_int_equal(read_file_at(dirfd(dir), e->d_name, 1 << 20, &text), 0);
		events = occurrences(buf_string(&text), "\"ph\"");
		fd = memory_file(text.data, text.len);
		if (trace_file_read(&file, fd, 0, &scratch, &err) < 0 || file.left_out || file.cut)
			fail_msg("%s: %s", e->d_name, err.message ?: file.why_left_out);
		assert_true(file.count >= events && events > 0);
		merge(&m, text.data, text.len, CLOCK_BOOTTIME);
		assert_int_equal(m.out.result.marks, file.count - file.sync_count);
		count++;
	}
	closedir(dir);
	assert_true(count >= 16);
}

/*
 * An end takes its category and its name from what is open, whatever its own are: readers find the
 * slice by them.
 */
static void ends_end_what_is_open(void **state _unused_)
{
	static const char app[] =
		"[{\"ph\":\"E\",\"ts\":1,\"pid\":1,\"tid\":2},"
		"{\"name\":\"a\",\"cat\":\"x\",\"ph\":\"B\",\"ts\":2,\"pid\":1,\"tid\":2},"
		"{\"name\":\"other\",\"cat\":\"y\",\"ph\":\"E\",\"ts\":3,\"pid\":1,\"tid\":2},"
		"{\"ph\":\"E\",\"ts\":4,\"pid\":1,\"tid\":2},"
		"{\"ph\":\"E\",\"ts\":4,\"pid\":1,\"tid\":3},"
		"{\"name\":\"b\",\"ph\":\"B\",\"ts\":5,\"pid\":1,\"tid\":4},"
		"{\"name\":\"c\",\"ph\":\"B\",\"ts\":6,\"pid\":1,\"tid\":4},"
		"{\"name\":\"\",\"ph\":\"E\",\"ts\":7,\"pid\":1,\"tid\":4},"
		"{\"ph\":\"E\",\"ts\":8,\"pid\":1,\"tid\":4}]";
	_cleanup_converted_ struct converted m;
	json_t *end;

	merge(&m, app, sizeof(app) - 1, CLOCK_BOOTTIME);
	end = find_event(&m, NULL, "E");
	assert_non_null(end);
	assert_true(json_number_value(json_object_get(end, "ts")) == 3);
	assert_string_equal(json_string_value(json_object_get(end, "cat")), "x");
	assert_string_equal(json_string_value(json_object_get(end, "name")), "a");
	assert_true(json_number_value(json_object_get(find_event(&m, "c", "E"), "ts")) == 7);
	assert_true(json_number_value(json_object_get(find_event(&m, "b", "E"), "ts")) == 8);
	assert_int_equal(m.out.result.marks, 6);
	assert_int_equal(m.out.result.warning_count, 3);
	assert_non_null(strstr(m.out.result.warnings[0], "3 marks end what never began"));
	assert_non_null(strstr(m.out.result.warnings[1], "1 end has another name"));
	/* Its clock was named, so no option is. */
	assert_non_null(strstr(m.out.result.warnings[2],
			       "before or after the recording, by CLOCK_BOOTTIME"));
	assert_null(strstr(m.out.result.warnings[2], "--merge-clock"));
}

static double ts_of(const struct converted *m)
{
	return json_number_value(json_object_get(find_event(m, "a", "i"), "ts"));
}

static const char *clock_of(const struct converted *m, int64_t *offset, int64_t *bound)
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
		_cleanup_converted_ struct converted m;

		merge(&m, mono, sizeof(mono) - 1, -1);
		assert_true(ts_of(&m) == 104000000.5);
		assert_string_equal(clock_of(&m, &offset, &bound), "MONOTONIC");
		assert_int_equal(offset, 3 * S);
		assert_int_equal(bound, 20);
		assert_int_equal(m.out.result.warning_count, 0);
		assert_false(m.out.result.incomplete);
	}
	{
		_cleanup_converted_ struct converted m;

		merge(&m, real, sizeof(real) - 1, CLOCK_REALTIME);
		assert_true(ts_of(&m) == 104000000.5);
		assert_string_equal(clock_of(&m, &offset, &bound), "REALTIME");
		assert_int_equal(bound, 50000);
		assert_int_equal(m.out.result.warning_count, 1);
		assert_non_null(strstr(m.out.result.warnings[0], "within 50 microseconds"));
	}
	{
		_cleanup_converted_ struct converted m;
		json_t *c, *args;

		merge(&m, sync, sizeof(sync) - 1, -1);
		assert_true(ts_of(&m) == 104000000);
		assert_string_equal(clock_of(&m, &offset, &bound), "clock_sync");
		assert_int_equal(offset, 100 * S - 3000);
		/* A single tie gives no rate: one second away the error may be 500 us. */
		assert_int_equal(bound, 503000);
		assert_non_null(strstr(m.out.result.warnings[0], "a second sync would tell"));
		/* Its mark is in the text, with its only counterpart. */
		assert_non_null(strstr(m.out.file.data, "trace_event_clock_sync: name=lab_1\\n"));
		c = find_event(&m, "clock_sync", "c");
		args = json_object_get(c, "args");
		assert_string_equal(json_string_value(json_object_get(args, "sync_id")), "lab_1");
		assert_int_equal(json_integer_value(json_object_get(args, "issue_ts")), 104999997);
		assert_int_equal(json_integer_value(json_object_get(c, "ts")), 105000003);
	}
}

/* A bad file is left out with a warning; the recording is kept. */
static void a_bad_file_is_reported(void **state _unused_)
{
	static const char *const files[] = { "", "nonsense", "[{\"ts\":NaN}]",
					     "{\"traceEvents\":[{" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_converted_ struct converted m;

		merge(&m, files[i], strlen(files[i]), -1);
		assert_true(m.out.result.incomplete);
		assert_int_equal(m.out.result.warning_count, 1);
		assert_non_null(strstr(m.out.result.warnings[0], "app.json: "));
		assert_int_equal(m.out.result.events, 3);
	}
}

/* Names of any bytes: merging must not pass invalid bytes on to the output. */
static void any_bytes_become_json(void **state _unused_)
{
	static const char app[] =
		"[{\"name\":\"a\xff\xc3\xa4\\u0000\\ud800\x01\",\"ph\":\"i\",\"ts\":1,"
		"\"pid\":1,\"cname\":\"no such colour\",\"args\":{\"\xfe\":\"\\u0007\"}}]";
	_cleanup_converted_ struct converted m;
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

static void a_file_without_events_is_reported(void **state _unused_)
{
	static const char *const texts[] = { "{}", "[]", "{\"traceEvents\":5}",
					     "{\"name\":\"x\"}" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_converted_ struct converted m;

		merge(&m, texts[i], strlen(texts[i]), -1);
		assert_int_equal(m.out.result.warning_count, 1);
		assert_non_null(strstr(m.out.result.warnings[0], "not one event"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_are_mapped),
		cmocka_unit_test(every_phase_is_kept),
		cmocka_unit_test(every_sample_has_a_frame),
		cmocka_unit_test(ends_end_what_is_open),
		cmocka_unit_test(examples_are_taken),
		cmocka_unit_test(clocks_are_tied),
		cmocka_unit_test(a_bad_file_is_reported),
		cmocka_unit_test(a_file_without_events_is_reported),
		cmocka_unit_test(any_bytes_become_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
