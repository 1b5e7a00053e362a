/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Clocks that are set during a recording, or stand still while the machine sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/io.h"
#include "converted.h"
#include "daemon/capture/clocks.h"
#include "formats/formats.h"
#include "make_stream.h"
#include "memory_file.h"
#include "proto/perfetto/trace.pb-c.h"

#define PB(name) Perfetto__Protos__##name
#define S NSEC_PER_SEC

/* s: BOOTTIME, and the other clocks at that time. */
struct reading {
	uint64_t boot, mono, real;
};

#define READINGS 5
/* A clock that is set during a recording, or stands still while the machine sleeps. */
struct stepped {
	const char *what;
	struct reading readings[READINGS]; /* from start to end of the recording */
	clockid_t clock;		   /* the clock of the file's times */
	struct {
		double at, boot; /* s: in the file, and the true time */
	} events[4];
	int64_t real_ns, mono_ns; /* size of the steps */
	uint64_t bound;		  /* ns, of the file */
	const char *warning;	  /* NULL: none */
};

static void put_reading(struct maker *m, const struct reading *r, uint32_t phase)
{
	Traced__Capture__ClockReading mono = TRACED__CAPTURE__CLOCK_READING__INIT, real = mono;
	Traced__Capture__Clocks clocks = TRACED__CAPTURE__CLOCKS__INIT;

	mono.clock = CLOCK_MONOTONIC;
	real.clock = CLOCK_REALTIME;
	mono.boot_before_ns = real.boot_before_ns = r->boot * S - 20;
	mono.boot_after_ns = real.boot_after_ns = r->boot * S + 20;
	mono.value_ns = r->mono * S;
	real.value_ns = r->real * S;
	clocks.phase = phase;
	clocks.n_readings = 2;
	clocks.readings = (Traced__Capture__ClockReading *[]){ &mono, &real };
	assert_int_equal(stream_write_message(&m->writer, CHUNK_CLOCKS, &clocks.base), 0);
}

static void make_stepped(struct maker *m, const struct stepped *s)
{
	uint64_t last = s->readings[READINGS - 1].boot;

	maker_begin(m, 1024);
	for (uint32_t i = 0; i < READINGS; i++)
		put_reading(m, &s->readings[i],
			    i + 1 == READINGS ? CLOCK_PHASE_END
			    : i		      ? CLOCK_PHASE_PERIODIC
					      : CLOCK_PHASE_START);
	page_begin(m, 101 * S);
	event_number(m, 101 * S, 7, 1);
	event_number(m, (last - 1) * S, 7, 2);
	maker_finish(m);
}

/* A clock's row at the end of the recording reports a step or a drift, never both. */
static void expect_change(const struct converted *c, const char *clock, int64_t stepped)
{
	json_t *row, *found = NULL;
	size_t i;

	json_array_foreach(
		other_data(c, "clock_offsets"), i,
		row) if (!strcmp(json_string_value(json_object_get(row, "clock")), clock) &&
			 !strcmp(json_string_value(json_object_get(row, "when")), "end")) found =
		row;
	assert_non_null(found);
	if (stepped) {
		assert_null(json_object_get(found, "drift_ppb"));
		assert_number(found, "stepped_ns", stepped);
	} else {
		assert_true(json_number_value(json_object_get(found, "drift_ppb")) == 0);
		assert_null(json_object_get(found, "stepped_ns"));
	}
}

static void expect_events(const struct converted *c, const struct stepped *s)
{
	json_t *e;
	size_t i, seen = 0;

	json_array_foreach(json_object_get(c->json, "traceEvents"), i, e)
	{
		const char *name = json_string_value(json_object_get(e, "name"));
		double ts = json_number_value(json_object_get(e, "ts")) / 1e6;

		if (!name || strlen(name) != 1)
			continue;
		if (ts != s->events[*name - 'a'].boot)
			fail_msg("%s: %s is at %f", s->what, name, ts);
		seen++;
	}
	assert_int_equal(seen, ARRAY_SIZE(s->events));
}

static void convert_stepped(const struct stepped *s)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted c;
	_cleanup_close_ int fd = -EBADF;
	struct export_merge merge = { .name = "app.json", .clock = s->clock };
	json_t *row;

	make_stepped(&m, s);
	for (size_t i = 0; i < ARRAY_SIZE(s->events); i++)
		buf_printf(&text,
			   "%c{\"name\":\"%c\",\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":%.1f}",
			   i ? ',' : '[', (char)('a' + i), s->events[i].at * 1e6);
	buf_putc(&text, ']');
	fd = merge.fd = memory_file(text.data, text.len);
	convert(&c, m.fd, &(struct export_options){ .merges = &merge, .merge_count = 1 });
	expect_events(&c, s);
	expect_change(&c, "REALTIME", s->real_ns);
	expect_change(&c, "MONOTONIC", s->mono_ns);
	row = json_array_get(other_data(&c, "merged"), 0);
	assert_number(row, "bound_ns", s->bound);
	assert_true(json_is_null(json_object_get(row, "drift_ppb")));
	assert_int_equal(c.out.result.warning_count, s->warning ? 1 : 0);
	if (s->warning)
		assert_string_equal(c.out.result.warnings[0], s->warning);
}

static const struct stepped steps[] = {
	{ .what = "an hour forth",
	  .readings = { { 100, 90, 5000 },
			{ 105, 95, 5005 },
			{ 110, 100, 8610 },
			{ 115, 105, 8615 },
			{ 120, 110, 8620 } },
	  .clock = CLOCK_REALTIME,
	  .events = { { 5003, 103 }, { 5006.5, 106.5 }, { 8608.5, 108.5 }, { 8612, 112 } },
	  .real_ns = 3600 * S,
	  .bound = 20 },
	{ .what = "an hour back",
	  .readings = { { 100, 90, 5000 },
			{ 105, 95, 5005 },
			{ 110, 100, 1410 },
			{ 115, 105, 1415 },
			{ 120, 110, 1420 } },
	  .clock = CLOCK_REALTIME,
	  .events = { { 5003, 103 }, { 5006.5, 106.5 }, { 1408.5, 108.5 }, { 1412, 112 } },
	  .real_ns = -3600 * (int64_t)S,
	  .bound = 20 },
	{ .what = "an hour forth, and back",
	  .readings = { { 100, 90, 5000 },
			{ 105, 95, 5005 },
			{ 110, 100, 8610 },
			{ 115, 105, 5015 },
			{ 120, 110, 5020 } },
	  .clock = CLOCK_REALTIME,
	  .events = { { 5003, 103 }, { 8608.5, 108.5 }, { 8611, 111 }, { 5017, 117 } },
	  .bound = 20 },
	/* 5006 may be before the step or after it. */
	{ .what = "two seconds forth",
	  .readings = { { 100, 90, 5000 },
			{ 105, 95, 5005 },
			{ 110, 100, 5012 },
			{ 115, 105, 5017 },
			{ 120, 110, 5022 } },
	  .clock = CLOCK_REALTIME,
	  .events = { { 5003, 103 }, { 5006, 106 }, { 5013, 111 }, { 5018, 116 } },
	  .real_ns = 2 * S,
	  .bound = 2 * S + 20,
	  .warning =
		  "app.json: its clock is tied to the trace only within 2000001 microseconds: it "
		  "was set, or the machine slept" },
	{ .what = "a sleep",
	  .readings = { { 100, 90, 5000 },
			{ 105, 95, 5005 },
			{ 210, 100, 5110 },
			{ 215, 105, 5115 },
			{ 220, 110, 5120 } },
	  .clock = CLOCK_MONOTONIC,
	  .events = { { 93, 103 }, { 96, 106 }, { 101, 211 }, { 107, 217 } },
	  .mono_ns = -100 * (int64_t)S,
	  .bound = 100 * S + 20,
	  .warning = "app.json: its clock is tied to the trace only within 100000001 microseconds: "
		     "it was set, or the machine slept" },
};

/*
 * Marks keep their place, whatever the clock was set to; where the place is uncertain, the output
 * says so.
 */
static void a_clock_may_step(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		convert_stepped(&steps[i]);
}

/* A Perfetto trace keeps every reading as it was: its reader follows a clock that is set. */
static void steps_are_in_the_perfetto_trace(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		_cleanup_close_ int out = memory_file("", 0);
		struct export_options o = { .format = "pftrace",
					    .perfetto.compression = PERFETTO_PLAIN };
		_cleanup_export_result_ struct export_result result;
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_buf_ struct buf file = BUF_INIT;
		const struct reading *r = steps[i].readings;
		PB(Trace) * trace;

		make_stepped(&m, &steps[i]);
		assert_int_equal(export_stream(m.fd, out, &o, &result, NULL), 0);
		assert_int_equal(result.warning_count, 0);
		memory_file_read(out, &file);
		trace = perfetto__protos__trace__unpack(NULL, file.len, (uint8_t *)file.data);
		assert_non_null(trace);
		for (size_t k = 0; k < trace->n_packet; k++) {
			const PB(ClockSnapshot) *c =
				trace->packet[k]->data_case ==
						PERFETTO__PROTOS__TRACE_PACKET__DATA_CLOCK_SNAPSHOT
					? trace->packet[k]->clock_snapshot
					: NULL;

			if (!c)
				continue;
			/* MONOTONIC, REALTIME, BOOTTIME, by their numbers in the trace. */
			assert_int_equal(c->n_clocks, 3);
			for (size_t n = 0; n < 3; n++)
				assert_int_equal(c->clocks[n]->timestamp,
						 (c->clocks[n]->clock_id == 3	? r->mono
						  : c->clocks[n]->clock_id == 1 ? r->real
										: r->boot) *
							 S);
			r++;
		}
		assert_ptr_equal(r, steps[i].readings + READINGS);
		perfetto__protos__trace__free_unpacked(trace, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_may_step),
		cmocka_unit_test(steps_are_in_the_perfetto_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
