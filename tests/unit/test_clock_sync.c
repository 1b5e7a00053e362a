/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ties of clocks: marks that tracectl sync writes into the ring, files with a controller's side of
 * them, and readings that relate the machine's clocks to each other.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/io.h"
#include "converted.h"
#include "daemon/capture/clocks.h"
#include "make_stream.h"
#include "marks/clock_map.h"
#include "memory_file.h"
#include "traced/mark_record.h"

#define S NSEC_PER_SEC

struct noted {
	const char *id;
	uint64_t at, before, after; /* time of the mark, and the readings around it */
};

/* A recording from 101 s to 109 s with these syncs. */
static void make(struct maker *m, const struct noted *syncs, size_t count)
{
	maker_begin(m, 1024);
	for (size_t i = 0; i < count; i++) {
		Traced__Capture__Clocks clocks = TRACED__CAPTURE__CLOCKS__INIT;

		clocks.phase = CLOCK_PHASE_SYNC;
		clocks.sync_id = (char *)(uintptr_t)syncs[i].id;
		clocks.sync_before_ns = syncs[i].before;
		clocks.sync_after_ns = syncs[i].after;
		assert_int_equal(stream_write_message(&m->writer, CHUNK_CLOCKS, &clocks.base), 0);
	}
	page_begin(m, 101 * S);
	event_number(m, 101 * S, 7, 1);
	for (size_t i = 0; i < count; i++) {
		char text[160];

		snprintf(text, sizeof(text), "trace_event_clock_sync: name=%s", syncs[i].id);
		event_print_mark(m, syncs[i].at, 7, text);
	}
	event_number(m, 109 * S, 7, 2);
	maker_finish(m);
}

/* The only clock_sync event with that id. */
static json_t *find_tie(const struct converted *c, const char *id)
{
	json_t *events = json_object_get(c->json, "traceEvents"), *e, *found = NULL;
	size_t i;

	json_array_foreach(events, i, e)
	{
		json_t *args = json_object_get(e, "args");

		if (strcmp(json_string_value(json_object_get(e, "ph")), "c") != 0 ||
		    strcmp(json_string_value(json_object_get(args, "sync_id")), id) != 0)
			continue;
		assert_null(found);
		found = e;
	}
	return found;
}

/* The text's mark is in the middle of the tie, whatever the two readings are. */
static void a_sync_has_its_bound(void **state _unused_)
{
	static const struct noted syncs[] = {
		{ "traced_abcdef01", 101 * S + 5, 101 * S, 101 * S + 10 },
		{ "lab-1", 105 * S + 700, 105 * S + 100, 105 * S + 2100 },
	};
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted c;
	json_t *tie, *row;

	make(&m, syncs, 2);
	convert(&c, m.fd, NULL);
	assert_int_equal(c.out.result.warning_count, 0);
	tie = find_tie(&c, "lab-1");
	assert_non_null(tie);
	assert_number(tie, "ts", 105000001 + 2);
	assert_number(json_object_get(tie, "args"), "issue_ts", 105000001 - 2);
	tie = find_tie(&c, "traced_abcdef01");
	assert_number(json_object_get(tie, "args"), "issue_ts",
		      json_integer_value(json_object_get(tie, "ts")));
	assert_int_equal(json_array_size(other_data(&c, "kernel_syncs")), 2);
	row = json_array_get(other_data(&c, "kernel_syncs"), 1);
	assert_string_equal(json_string_value(json_object_get(row, "sync_id")), "lab-1");
	assert_number(row, "issue_boottime_ns", 105 * S + 100);
	assert_number(row, "answer_boottime_ns", 105 * S + 2100);
	assert_number(row, "trace_ns", 105 * S + 700);
	assert_number(row, "offset_ns", 700 - 1100);
	assert_number(row, "bound_ns", 1000);
}

static void a_wide_sync_is_warned_of(void **state _unused_)
{
	static const struct noted syncs[] = {
		/*
		 * The recorder made its own mark under an unknown load: no other tie depends on it.
		 */
		{ "traced_abcdef01", 102 * S, 102 * S - 90000, 102 * S + 90000 },
		{ "near", 103 * S, 103 * S - 10000, 103 * S + 10000 },
		{ "far", 104 * S, 104 * S - 12500, 104 * S + 12500 },
		{ "further", 105 * S, 105 * S - 20000, 105 * S + 20000 },
	};
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted strict, lenient;

	make(&m, syncs, ARRAY_SIZE(syncs));
	convert(&strict, m.fd, NULL);
	assert_int_equal(strict.out.result.warning_count, 1);
	assert_string_equal(strict.out.result.warnings[0],
			    "2 syncs are tied to the trace only within more than 10 microseconds, "
			    "the worst within 20");
	convert(&lenient, m.fd, &(struct export_options){ .bound_max_ns = 20000 });
	assert_int_equal(lenient.out.result.warning_count, 0);
}

/*
 * A separate clock, 20 ppm fast, that another file ties: the output has its offset, bound and
 * drift.
 */
static void a_controller_is_tied_by_a_file_of_syncs(void **state _unused_)
{
	static const struct noted syncs[] = { { "one", 102 * S, 102 * S - 50, 102 * S + 50 },
					      { "two", 106 * S, 106 * S - 50, 106 * S + 50 } };
	static const char power[] =
		"[{\"name\":\"watts\",\"ph\":\"C\",\"pid\":9,\"ts\":2000040.0,\"args\":{\"w\":5}},"
		"{\"name\":\"watts\",\"ph\":\"C\",\"pid\":9,\"ts\":6000120.0,\"args\":{\"w\":6}}]";
	/*
	 * Issued and answered 4 us apart; its second is 1.00002 of ours, its zero is at our 100 s.
	 */
	static const char ties[] = "[{\"name\":\"clock_sync\",\"ph\":\"c\",\"ts\":2000042,"
				   "\"args\":{\"sync_id\":\"one\",\"issue_ts\":2000038}},"
				   "{\"name\":\"clock_sync\",\"ph\":\"c\",\"ts\":6000122.000,"
				   "\"args\":{\"sync_id\":\"two\",\"issue_ts\":6000118.0}}]";
	_cleanup_close_ int fd = memory_file(power, strlen(power)),
			    sync_fd = memory_file(ties, strlen(ties));
	const struct export_merge merge = { .fd = fd,
					    .name = "power.json",
					    .clock = -1,
					    .sync_fd = sync_fd,
					    .sync_name = "ties.json" };
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted c;
	json_t *row, *e, *tied;
	size_t i, seen = 0;

	make(&m, syncs, 2);
	convert(&c, m.fd, &(struct export_options){ .merges = &merge, .merge_count = 1 });
	assert_int_equal(c.out.result.warning_count, 0);
	row = json_array_get(other_data(&c, "merged"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "clock")), "clock_sync");
	assert_number(row, "ties", 2);
	assert_number(row, "offset_ns", 100 * S - 40000);
	/* In the middle, two seconds from both ties, the rate may be another one. */
	assert_number(row, "bound_ns", 4001);
	assert_number(row, "tie_bound_ns", 2000);
	tied = json_object_get(row, "tied");
	assert_int_equal(json_array_size(tied), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(tied, 1), "sync_id")),
			    "two");
	assert_number(json_array_get(tied, 1), "clock_ns", 6000120000);
	assert_number(json_array_get(tied, 1), "offset_ns", 100 * S - 120000);
	assert_number(json_array_get(tied, 1), "bound_ns", 2000);
	assert_true(json_is_null(json_object_get(json_array_get(tied, 0), "drift_ppb")));
	assert_true(json_number_value(json_object_get(json_array_get(tied, 1), "drift_ppb")) <
		    -19990);
	assert_true(json_number_value(json_object_get(row, "drift_ppb")) < -19990);
	assert_true(json_number_value(json_object_get(row, "drift_ppb")) > -20010);
	json_array_foreach(json_object_get(c.json, "traceEvents"), i, e)
	{
		if (strcmp(json_string_value(json_object_get(e, "ph")), "C") != 0)
			continue;
		assert_true(json_number_value(json_object_get(e, "ts")) ==
			    (seen++ ? 106e6 : 102e6));
	}
	assert_int_equal(seen, 2);
	/* Each has one counterpart: the controller's side of it. */
	assert_number(find_tie(&c, "one"), "ts", 102000002);
}

static void one_tie_tells_no_drift(void **state _unused_)
{
	static const struct noted syncs[] = { { "one", 102 * S, 102 * S - 50, 102 * S + 50 } };
	static const char ties[] = "[{\"name\":\"clock_sync\",\"ph\":\"c\",\"ts\":2000042,"
				   "\"args\":{\"sync_id\":\"one\",\"issue_ts\":2000000}}]";
	_cleanup_close_ int fd = memory_file(ties, strlen(ties));
	const struct export_merge merge = { .fd = fd, .name = "ties.json", .clock = -1 };
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted c;
	json_t *row;

	make(&m, syncs, 1);
	convert(&c, m.fd, &(struct export_options){ .merges = &merge, .merge_count = 1 });
	row = json_array_get(other_data(&c, "merged"), 0);
	assert_true(json_is_null(json_object_get(row, "drift_ppb")));
	assert_number(row, "bound_ns", 21011); /* 21 us from the tie, at 500 ppm */
	assert_number(row, "tie_bound_ns", 21000);
	assert_int_equal(c.out.result.warning_count, 1);
	assert_non_null(strstr(c.out.result.warnings[0],
			       "ties.json: its clock is tied to the trace only "
			       "within 22 microseconds: a second sync would tell its rate"));
}

/* Beyond its ties a clock keeps its rate, unless they are too close to tell it. */
static void a_clock_of_its_own_goes_on(void **state _unused_)
{
	struct clock_map map = { .own_rate = true }, close = { .own_rate = true };
	uint64_t bound;

	assert_int_equal(clock_map_add(&map, &(struct clock_point){ 10 * S, 20 * S, 5, NULL }), 0);
	assert_int_equal(
		clock_map_add(&map, &(struct clock_point){ 20 * S, 30 * S + 1000, 5, NULL }), 0);
	clock_map_seal(&map);
	assert_int_equal(clock_map_apply(&map, 40 * S, &bound), 50 * S + 3000);
	assert_int_equal(clock_map_apply(&map, 5 * S, &bound), 15 * S - 500);
	assert_int_equal(clock_map_apply(&map, 15 * S, &bound), 25 * S + 500);
	clock_map_deinit(&map);
	assert_int_equal(clock_map_add(&close, &(struct clock_point){ 10 * S, 20 * S, 5, NULL }),
			 0);
	assert_int_equal(
		clock_map_add(&close, &(struct clock_point){ 10 * S + 9, 20 * S + 19, 5, NULL }),
		0);
	clock_map_seal(&close);
	assert_int_equal(clock_map_apply(&close, 15 * S, &bound), 25 * S + 10);
	clock_map_deinit(&close);
}

/* The bound grows with the distance to the nearest tie. */
static void a_bound_tells_how_far_the_ties_are(void **state _unused_)
{
	struct clock_map map = { .own_rate = true }, one = { .own_rate = true }, kept = { 0 };
	struct clock_map close = { .own_rate = true };
	struct clock_sum sum;
	uint64_t bound;

	assert_int_equal(clock_map_add(&map, &(struct clock_point){ 10 * S, 20 * S, 2000, NULL }),
			 0);
	assert_int_equal(clock_map_add(&map, &(struct clock_point){ 20 * S, 30 * S, 3000, NULL }),
			 0);
	clock_map_seal(&map);
	clock_map_apply(&map, 10 * S, &bound);
	assert_int_equal(bound, 2000 + 1);
	clock_map_apply(&map, 20 * S, &bound);
	assert_int_equal(bound, 3000);
	clock_map_apply(&map, 14 * S, &bound);
	assert_int_equal(bound, 2400 + 1 + 4000);
	/* The rate may be wrong by 5 us in 10 s plus one millionth. */
	clock_map_apply(&map, 40 * S, &bound);
	assert_int_equal(bound, 3000 + 20 * (500 + 1000));
	clock_map_apply(&map, 8 * S, &bound);
	assert_int_equal(bound, 2000 + 2 * (500 + 1000));
	assert_int_equal(clock_map_worst(&map, 12 * S, 13 * S), 2300 + 1 + 3000);
	assert_int_equal(clock_map_worst(&map, 12 * S, 19 * S), 2500 + 1 + 5000);
	assert_int_equal(clock_map_worst(&map, 8 * S, 40 * S), 33000);
	clock_map_sum(&map, &sum);
	assert_true(sum.drift_known);
	assert_int_equal(sum.drift, 0);
	assert_int_equal(sum.drift_bound, 500);
	clock_map_deinit(&map);
	assert_int_equal(clock_map_add(&one, &(struct clock_point){ 10 * S, 20 * S, 7, NULL }), 0);
	clock_map_seal(&one);
	clock_map_apply(&one, 12 * S, &bound);
	assert_int_equal(bound, 7 + 2 * S / 1000000 * CLOCK_DRIFT_MAX_PPM);
	clock_map_deinit(&one);
	/* The bounds exceed the distance of the ties: no rate, and the better one's offset. */
	assert_int_equal(
		clock_map_add(&close, &(struct clock_point){ 10 * S, 20 * S, 4000000, NULL }), 0);
	assert_int_equal(
		clock_map_add(&close, &(struct clock_point){ 10 * S + 10000000, 20 * S + 4000000,
							     8000000, NULL }),
		0);
	clock_map_seal(&close);
	assert_int_equal(clock_map_apply(&close, 10 * S + 9000000, &bound), 20 * S + 9000000);
	assert_int_equal(bound, 4000000 + 4500);
	clock_map_sum(&close, &sum);
	assert_false(sum.drift_known);
	clock_map_deinit(&close);
	/* A clock that the kernel steers has no drift. */
	assert_int_equal(clock_map_add(&kept, &(struct clock_point){ 10 * S, 20 * S, 7, NULL }), 0);
	clock_map_seal(&kept);
	clock_map_apply(&kept, 12 * S, &bound);
	assert_int_equal(bound, 7);
	clock_map_deinit(&kept);
}

/* Snapshots of a recording of this machine, as the exporter has them. */
#define SNAPSHOTS 8
struct snapshots {
	Traced__Capture__Header header;
	Traced__Capture__Clocks clocks[SNAPSHOTS], *list[SNAPSHOTS];
	Traced__Capture__ClockReading readings[SNAPSHOTS][CLOCKS_MAX], *rows[SNAPSHOTS][CLOCKS_MAX];
	struct trace_info info;
};

static void take_snapshot(struct snapshots *s, size_t i)
{
	struct clock_snapshot now;

	clocks_read(&now);
	traced__capture__clocks__init(&s->clocks[i]);
	for (unsigned k = 0; k < now.count; k++) {
		Traced__Capture__ClockReading *r = &s->readings[i][k];

		traced__capture__clock_reading__init(r);
		r->clock = now.readings[k].clock;
		r->value_ns = now.readings[k].value;
		r->boot_before_ns = now.readings[k].before;
		r->boot_after_ns = now.readings[k].after;
		s->rows[i][k] = r;
	}
	s->clocks[i].readings = s->rows[i];
	s->clocks[i].n_readings = now.count;
	s->list[i] = &s->clocks[i];
	s->info.clock_count = i + 1;
}

static uint64_t read_clock(uint32_t clock)
{
#if defined(__x86_64__) || defined(__i386__)
	if (clock == MARK_CLOCK_TSC)
		return __builtin_ia32_rdtsc();
#endif
	return now_ns((clockid_t)clock);
}

#define PROBES 10000
/*
 * A stamp of each clock that a producer may use, taken between two stamps of BOOTTIME, lands
 * between them, within the snapshots' own bound and the readings' resolution.
 */
static void stamps_of_other_clocks_land_where_they_were_taken(void **state _unused_)
{
	static const uint32_t clocks[] = {
		CLOCK_MONOTONIC,
		CLOCK_REALTIME,
		CLOCK_MONOTONIC_RAW,
#if defined(__x86_64__) || defined(__i386__)
		MARK_CLOCK_TSC,
#endif
	};
	static struct {
		uint64_t before, value, after;
	} probes[ARRAY_SIZE(clocks)][PROBES];
	static struct snapshots s;
	const struct timespec pause = { .tv_nsec = 20000000 };

	traced__capture__header__init(&s.header);
	s.header.trace_clock = (char *)"boot";
	s.info.header = &s.header;
	s.info.clocks = (Traced__Capture__Clocks **)s.list;
	take_snapshot(&s, 0);
	for (size_t n = 1; n < SNAPSHOTS; n++) {
		size_t from = (n - 1) * PROBES / (SNAPSHOTS - 1), to = n * PROBES / (SNAPSHOTS - 1);

		for (size_t i = from; i < to; i++) {
			for (size_t c = 0; c < ARRAY_SIZE(clocks); c++) {
				probes[c][i].before = now_ns(CLOCK_BOOTTIME);
				probes[c][i].value = read_clock(clocks[c]);
				probes[c][i].after = now_ns(CLOCK_BOOTTIME);
			}
		}
		nanosleep(&pause, NULL);
		take_snapshot(&s, n);
	}
	for (size_t c = 0; c < ARRAY_SIZE(clocks); c++) {
		struct clock_map map;
		uint64_t worst = 0, bound;

		assert_int_equal(clock_map_of(&map, &s.info, (clockid_t)clocks[c]), 0);
		for (size_t i = 0; i < PROBES; i++) {
			uint64_t at = clock_map_apply(&map, probes[c][i].value, &bound), off = 0;

			if (at < probes[c][i].before)
				off = probes[c][i].before - at;
			else if (at > probes[c][i].after)
				off = at - probes[c][i].after;
			worst = MAX(worst, off > bound ? off - bound : 0);
		}
		/* The kernel slews BOOTTIME against these two while NTP corrects it. */
		if (worst >
		    (clocks[c] == CLOCK_MONOTONIC_RAW || clocks[c] == MARK_CLOCK_TSC ? 5000 : 2))
			fail_msg("clock %" PRIu32 ": %" PRIu64 " ns beyond the bound", clocks[c],
				 worst);
		clock_map_deinit(&map);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sync_has_its_bound),
		cmocka_unit_test(a_wide_sync_is_warned_of),
		cmocka_unit_test(a_controller_is_tied_by_a_file_of_syncs),
		cmocka_unit_test(one_tie_tells_no_drift),
		cmocka_unit_test(a_clock_of_its_own_goes_on),
		cmocka_unit_test(a_bound_tells_how_far_the_ties_are),
		cmocka_unit_test(stamps_of_other_clocks_land_where_they_were_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
