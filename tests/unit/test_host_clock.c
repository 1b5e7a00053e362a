/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ties of two machines' clocks, by simulated exchanges whose truth is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "stream/writer.h"
#include "trace/host_clock.h"

#define RUNS 2000

static uint64_t seed;

/* Splitmix64. */
static uint64_t random_u64(void)
{
	uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t random_below(uint64_t limit)
{
	return random_u64() % limit;
}

/* Two clocks: far = near + offset + drift * (near - begin). */
struct world {
	uint64_t begin, length; /* ns, near */
	int64_t offset;
	double drift;
	uint64_t delay_out, delay_back; /* ns, the least */
	uint64_t jitter;		/* ns */
};

static uint64_t far_of(const struct world *w, uint64_t near)
{
	double since = (double)(near - w->begin);

	return near + (uint64_t)w->offset + (uint64_t)(int64_t)(since * w->drift);
}

/* Mostly short, sometimes long: as a busy pipe. */
static uint64_t random_delay(uint64_t least, uint64_t jitter)
{
	uint64_t scale = random_below(10) ? jitter : 50 * jitter;

	return least + random_below(scale + 1);
}

static struct world random_world(void)
{
	uint64_t second = NSEC_PER_SEC;

	return (struct world){
		.begin = random_below(1000000) * second + random_below(second),
		.length = second / 2 + random_below(random_below(4) ? 20 * second : 900 * second),
		.offset = (int64_t)random_below(2000000 * second),
		.drift = ((double)random_below(400001) - 200000) * 1e-9,
		.delay_out = random_below(3) ? 20000 : 5000000,
		.delay_back = random_below(3) ? 20000 : 1000000,
		.jitter = random_below(3) ? 30000 : 3000000,
	};
}

/* Exchanges in the rhythm of `tracectl -H`. */
static void exchange(const struct world *w, struct host_ties *ret)
{
	uint64_t at = w->begin, step = 5000000;

	while (at < w->begin + w->length) {
		uint64_t there = at + random_delay(w->delay_out, w->jitter);
		uint64_t back = there + random_delay(w->delay_back, w->jitter);
		struct host_tie tie = { far_of(w, there), at + (back - at) / 2,
					(back - at + 1) / 2 };

		assert_int_equal(host_ties_add(ret, &tie), 0);
		step = ret->count < 12 ? 5000000 : 100000000;
		at = back + step;
	}
}

static void ties_deinit(struct host_ties *ties)
{
	free(ties->items);
}

static void test_error_is_within_the_bound(void **state _unused_)
{
	uint64_t close = 0;

	for (seed = 1; seed <= RUNS; seed += 1) {
		uint64_t run = seed;
		_cleanup_(ties_deinit) struct host_ties ties = { 0 };
		struct world w = random_world();
		struct host_clock clock;

		exchange(&w, &ties);
		assert_int_equal(host_clock_fit(&clock, ties.items, ties.count, far_of(&w, w.begin),
						far_of(&w, w.begin + w.length)),
				 0);
		for (int i = 0; i <= 40; i++) {
			uint64_t near = w.begin + w.length / 40 * (uint64_t)i;
			uint64_t got = host_clock_apply(&clock, far_of(&w, near));
			uint64_t error = got > near ? got - near : near - got;

			if (error > clock.bound)
				fail_msg("run %llu: wrong by %llu ns, bound %llu ns",
					 (unsigned long long)run, (unsigned long long)error,
					 (unsigned long long)clock.bound);
		}
		/* Useful bounds: about the shortest round trip. */
		close += clock.bound < w.delay_out + w.delay_back + 4 * w.jitter;
		seed = run;
	}
	assert_true(close > RUNS * 9 / 10);
}

static void test_drift_is_found(void **state _unused_)
{
	_cleanup_(ties_deinit) struct host_ties ties = { 0 };
	struct world w = { .begin = 5 * NSEC_PER_SEC,
			   .length = 60 * NSEC_PER_SEC,
			   .offset = 12345678901,
			   .drift = 40e-6,
			   .delay_out = 20000,
			   .delay_back = 20000,
			   .jitter = 10000 };
	struct host_clock clock;

	exchange(&w, &ties);
	assert_int_equal(host_clock_fit(&clock, ties.items, ties.count, far_of(&w, w.begin),
					far_of(&w, w.begin + w.length)),
			 0);
	/* The far clock runs faster, so the near one slower. */
	assert_true(clock.drift_known && clock.drift > -41000 && clock.drift < -39000);
	assert_true(clock.bound < 100000);
}

/* All exchanges are of the first millisecond, and their line has the wrong sign. */
static void test_a_steep_line_has_its_bound(void **state _unused_)
{
	const uint64_t from = NSEC_PER_SEC, length = 2 * NSEC_PER_SEC;
	const struct host_tie ties[] = { { from, from + 9000, 10000 },
					 { from + 1000000, from + 1000000 + 900 - 9000, 10000 } };
	struct host_clock clock;
	uint64_t near, got;

	assert_int_equal(host_clock_fit(&clock, ties, 2, from, from + length), 0);
	near = from + length + length / 1000000 * 900;
	got = host_clock_apply(&clock, from + length);
	assert_true(near - got <= clock.bound);
}

/* Two seconds with ties that are wrong by milliseconds: the line would be 2400 ppm steep. */
static void test_too_steep_a_line_is_no_drift(void **state _unused_)
{
	const uint64_t from = NSEC_PER_SEC, length = 2100000000, late = 5000000;
	const struct host_tie ties[] = { { from, from, late },
					 { from + length, from + length + late, late } };
	struct host_clock clock;

	assert_int_equal(host_clock_fit(&clock, ties, 2, from, from + length), 0);
	assert_false(clock.drift_known);
	assert_true(clock.drift == 0);
	/* Clocks without an offset, and with one of 5 ms, are both possible. */
	for (uint64_t offset = 0; offset <= late; offset += late) {
		uint64_t got = host_clock_apply(&clock, from + length / 2);
		uint64_t near = from + length / 2 + offset;

		assert_true((got > near ? got - near : near - got) <= clock.bound);
	}
	/* A single tie tells none either. */
	assert_int_equal(host_clock_fit(&clock, ties, 1, from, from + length), 0);
	assert_false(clock.drift_known);
}

static void test_lies_are_found(void **state _unused_)
{
	struct host_tie ties[40];
	struct host_clock clock;

	for (size_t i = 0; i < ARRAY_SIZE(ties); i++)
		ties[i] = (struct host_tie){ 1000000000 + i * 100000000, 5000000000 + i * 100000000,
					     20000 };
	assert_int_equal(host_clock_fit(&clock, ties, 40, ties[0].far, ties[39].far), 0);
	assert_true(clock.bound < 30000);
	/* A clock that was another one for a while. */
	ties[20].near += 3000000;
	assert_int_equal(host_clock_fit(&clock, ties, 40, ties[0].far, ties[39].far), -EBADMSG);
	/* Time goes back. */
	ties[20] = ties[19];
	assert_int_equal(host_clock_fit(&clock, ties, 40, ties[0].far, ties[39].far), -EBADMSG);
	assert_int_equal(host_clock_fit(&clock, ties, 0, 0, 1), -ENODATA);
	/* A clock that stands at its begin. */
	ties[0].far = 0;
	assert_int_equal(host_clock_fit(&clock, ties, 1, 0, 1), -EBADMSG);
	/* Any numbers: no overflow, no endless loop. */
	for (seed = 0; seed < 20000;) {
		uint64_t run = seed;

		for (size_t i = 0; i < ARRAY_SIZE(ties); i++)
			ties[i] = (struct host_tie){ random_u64() >> random_below(64),
						     random_u64() >> random_below(64),
						     random_u64() >> random_below(64) };
		host_clock_fit(&clock, ties, 1 + random_below(40), random_u64() >> random_below(64),
			       random_u64() >> random_below(64));
		seed = run + 1;
	}
}

static void test_many_ties_are_thinned(void **state _unused_)
{
	_cleanup_(ties_deinit) struct host_ties ties = { 0 };

	for (uint64_t i = 1; i <= 3 * HOST_TIES_MAX; i++) {
		struct host_tie tie = { i * 100, i * 100 + 7, i % 2 ? 1000 : 10 };

		assert_int_equal(host_ties_add(&ties, &tie), 0);
		assert_true(ties.count <= HOST_TIES_MAX);
	}
	for (size_t i = 1; i < ties.count; i++)
		assert_true(ties.items[i].far > ties.items[i - 1].far);
	/* The better one of each pair stayed. */
	assert_int_equal(ties.items[0].bound, 10);
}

/* 10 s by exchanges that are wrong by 2 ms and may be wrong by 5 ms; utc is right. */
#define PAIRS 100
struct pair {
	struct host_tie exchange_items[PAIRS], utc_items[PAIRS], phc_items[PAIRS];
	struct host_ties ties[TIE_KINDS];
	uint64_t from, to;
};

static void pair_init(struct pair *p, uint64_t utc_bound)
{
	p->from = NSEC_PER_SEC;
	for (size_t i = 0; i < PAIRS; i++) {
		uint64_t far = p->to = p->from + i * 100000000, near = far + 7 * NSEC_PER_SEC;

		p->exchange_items[i] = (struct host_tie){ far, near + 2000000, 5000000 };
		p->utc_items[i] = (struct host_tie){ far, near, utc_bound };
	}
	p->ties[TIES_EXCHANGES] = (struct host_ties){ p->exchange_items, PAIRS, PAIRS };
	p->ties[TIES_UTC] = (struct host_ties){ p->utc_items, PAIRS, PAIRS };
	p->ties[TIES_PHC] = (struct host_ties){ 0 };
}

static struct host_clock pair_choose(const struct pair *p)
{
	struct host_clock clock;

	assert_int_equal(host_clock_choose(&clock, p->ties, p->from, p->to), 0);
	return clock;
}

static void test_the_better_bound_counts(void **state _unused_)
{
	struct host_clock clock;
	struct pair p;

	pair_init(&p, 40000);
	clock = pair_choose(&p);
	assert_true(clock.by == TIES_UTC && clock.bound < 60000);
	assert_int_equal(host_clock_apply(&clock, p.from), p.from + 7 * NSEC_PER_SEC);
	/* Worse than the exchanges. */
	pair_init(&p, 9000000);
	clock = pair_choose(&p);
	assert_true(clock.by == TIES_EXCHANGES && clock.bound >= 5000000 && clock.bound < 5100000);
	/* One machine was not synchronised. */
	pair_init(&p, 40000);
	p.ties[TIES_UTC].count = 0;
	assert_int_equal(pair_choose(&p).by, TIES_EXCHANGES);
}

/* PTP's clocks with this bound, which are wrong by so much. */
static void pair_add_phc(struct pair *p, uint64_t bound, uint64_t wrong)
{
	for (size_t i = 0; i < PAIRS; i++) {
		p->phc_items[i] = p->utc_items[i];
		p->phc_items[i].near += wrong;
		p->phc_items[i].bound = bound;
	}
	p->ties[TIES_PHC] = (struct host_ties){ p->phc_items, PAIRS, PAIRS };
}

static void test_ptp_counts_if_it_is_best(void **state _unused_)
{
	struct host_clock clock;
	struct pair p;

	pair_init(&p, 40000);
	pair_add_phc(&p, 1000, 0);
	clock = pair_choose(&p);
	assert_true(clock.by == TIES_PHC && clock.bound < 5000);
	/* Without synchronised clocks, too. */
	p.ties[TIES_UTC].count = 0;
	assert_int_equal(pair_choose(&p).by, TIES_PHC);
	pair_init(&p, 40000);
	pair_add_phc(&p, 90000, 0);
	assert_int_equal(pair_choose(&p).by, TIES_UTC);
	/* The exchanges rule it out, but not the other one. */
	pair_add_phc(&p, 1000, 20000000);
	assert_int_equal(pair_choose(&p).by, TIES_UTC);
}

static void test_clocks_that_are_not_true_do_not_count(void **state _unused_)
{
	struct pair p;

	/* The exchanges rule out what they say, from the begin or at the end. */
	pair_init(&p, 40000);
	for (size_t i = 0; i < PAIRS; i++)
		p.utc_items[i].near -= 10000000;
	assert_int_equal(pair_choose(&p).by, TIES_EXCHANGES);
	pair_init(&p, 40000);
	for (size_t i = 0; i < PAIRS; i++)
		p.utc_items[i].near += i * 80000;
	assert_int_equal(pair_choose(&p).by, TIES_EXCHANGES);
	/* One was set in between. */
	pair_init(&p, 40000);
	for (size_t i = PAIRS / 2; i < PAIRS; i++)
		p.utc_items[i].near += 1000000;
	assert_int_equal(pair_choose(&p).by, TIES_EXCHANGES);
	/* Exchanges that contradict each other: the machine lies. */
	pair_init(&p, 40000);
	p.exchange_items[PAIRS / 2].near += 20000000;
	assert_int_equal(host_clock_choose(&(struct host_clock){ 0 }, p.ties, p.from, p.to),
			 -EBADMSG);
}

/* A stream with the begin and the end of the pair's recording. */
static int pair_stream(const struct pair *p)
{
	Traced__Capture__ClockReading reading = TRACED__CAPTURE__CLOCK_READING__INIT,
				      *readings = &reading;
	Traced__Capture__Clocks clocks = TRACED__CAPTURE__CLOCKS__INIT;
	int fd = memfd_create("stream", MFD_CLOEXEC);
	struct stream_writer w;

	assert_true(fd >= 0);
	assert_int_equal(stream_writer_init(&w, fd, 0), 0);
	reading.clock = CLOCK_BOOTTIME;
	clocks.readings = &readings;
	clocks.n_readings = 1;
	reading.boot_before_ns = reading.boot_after_ns = p->from;
	assert_int_equal(stream_write_message(&w, CHUNK_CLOCKS, &clocks.base), 0);
	reading.boot_before_ns = reading.boot_after_ns = p->to;
	assert_int_equal(stream_write_message(&w, CHUNK_CLOCKS, &clocks.base), 0);
	return fd;
}

static void test_all_ties_are_stored(void **state _unused_)
{
	struct host_origin origin = { .label = "pump" }, got;
	_cleanup_close_ int fd = -EBADF;
	struct pair p;

	pair_init(&p, 40000);
	fd = pair_stream(&p);
	assert_int_equal(host_origin_append(fd, &origin, p.ties, NULL), 0);
	assert_int_equal(host_origin_read(&got, fd, NULL), 0);
	assert_true(got.tied && got.clock.by == TIES_UTC && got.clock.bound < 60000);
	assert_null(got.lacks);
	pair_add_phc(&p, 1000, 0);
	assert_int_equal(host_origin_append(fd, &origin, p.ties, NULL), 0);
	assert_int_equal(host_origin_read(&got, fd, NULL), 0);
	assert_true(got.tied && got.clock.by == TIES_PHC && got.clock.bound < 5000);
}

/* A HOST chunk that the machine itself put into its capture does not count. */
static void test_a_machine_does_not_name_itself(void **state _unused_)
{
	const struct host_ties none[TIE_KINDS] = { 0 };
	struct host_origin forged = { .label = "valve" }, origin = { .label = "pump" }, got;
	_cleanup_close_ int fd = -EBADF;
	struct pair p;

	pair_init(&p, 40000);
	fd = pair_stream(&p);
	assert_int_equal(host_origin_append(fd, &forged, none, NULL), 0);
	assert_int_equal(host_origin_append(fd, &origin, p.ties, NULL), 0);
	assert_int_equal(host_origin_read(&got, fd, NULL), 0);
	assert_string_equal(got.label, "pump");
	assert_true(got.tied);
}

static void test_a_damaged_chunk_is_said(void **state _unused_)
{
	struct host_origin origin = { .label = "pump" }, got;
	struct stream_writer w = { 0 };
	struct pair p;
	off_t end;
	char c;
	int fd;

	/* No chunk is no damage. */
	pair_init(&p, 40000);
	fd = pair_stream(&p);
	assert_int_equal(host_origin_read(&got, fd, NULL), 0);
	assert_null(got.lacks);
	/* A byte of another value. */
	assert_int_equal(host_origin_append(fd, &origin, p.ties, NULL), 0);
	end = lseek(fd, 0, SEEK_END);
	assert_int_equal(pread(fd, &c, 1, end - 20), 1);
	c ^= 1;
	assert_int_equal(pwrite(fd, &c, 1, end - 20), 1);
	assert_int_equal(host_origin_read(&got, fd, NULL), 0);
	assert_true(!got.tied && !*got.label && strstr(got.lacks, "is damaged"));
	/* One that is sound behind it counts. */
	assert_int_equal(host_origin_append(fd, &origin, p.ties, NULL), 0);
	assert_int_equal(host_origin_read(&got, fd, NULL), 0);
	assert_true(got.tied && !got.lacks);
	close(fd);
	/* No message. */
	w.fd = fd = pair_stream(&p);
	lseek(fd, 0, SEEK_END);
	assert_int_equal(stream_write(&w, CHUNK_HOST, "\xff\xff\xff", 3), 0);
	assert_int_equal(host_origin_read(&got, fd, NULL), 0);
	assert_true(!got.tied && strstr(got.lacks, "is damaged"));
	close(fd);
	/* Ties of a machine that lies. */
	p.exchange_items[PAIRS / 2].near += 20000000;
	fd = pair_stream(&p);
	assert_int_equal(host_origin_append(fd, &origin, p.ties, NULL), 0);
	assert_int_equal(host_origin_read(&got, fd, NULL), 0);
	assert_true(!got.tied && strstr(got.lacks, "contradict"));
	assert_string_equal(got.label, "pump");
	close(fd);
}

/* The origin of a stream with so many readings of the time of day at once. */
static struct host_origin origin_of_many(uint64_t boot, uint64_t wall, size_t count)
{
	Traced__Capture__ClockReading reading = TRACED__CAPTURE__CLOCK_READING__INIT,
				      **readings = calloc(count, sizeof(*readings));
	Traced__Capture__Clocks clocks = TRACED__CAPTURE__CLOCKS__INIT;
	struct host_origin origin;
	struct stream_writer w;
	int fd = memfd_create("stream", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(stream_writer_init(&w, fd, 0), 0);
	reading.clock = CLOCK_REALTIME;
	reading.boot_before_ns = reading.boot_after_ns = boot;
	reading.value_ns = wall;
	assert_non_null(readings);
	for (size_t i = 0; i < count; i++)
		readings[i] = &reading;
	clocks.readings = readings;
	clocks.n_readings = count;
	assert_int_equal(stream_write_message(&w, CHUNK_CLOCKS, &clocks.base), 0);
	assert_int_equal(host_origin_read(&origin, fd, NULL), 0);
	close(fd);
	free(readings);
	return origin;
}

static struct host_origin origin_of(uint64_t boot, uint64_t wall)
{
	return origin_of_many(boot, wall, 1);
}

static void test_wall_clocks_are_checked(void **state _unused_)
{
	struct host_origin origin = origin_of(5000, UINT64_C(1790000000000005000));

	assert_true(origin.wall_known);
	assert_int_equal(origin.wall, UINT64_C(1790000000000000000));
	/* The difference of two of them must not overflow. */
	assert_false(origin_of(5000, UINT64_C(1) << 63).wall_known);
	assert_false(origin_of(UINT64_MAX, 1).wall_known);
	/* A kilobyte of a file can be a gigabyte of readings. */
	assert_true(origin_of_many(5000, UINT64_C(1790000000000005000), 50).wall_known);
	assert_false(origin_of_many(5000, UINT64_C(1790000000000005000), 5000).wall_known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_error_is_within_the_bound),
		cmocka_unit_test(test_drift_is_found),
		cmocka_unit_test(test_a_steep_line_has_its_bound),
		cmocka_unit_test(test_too_steep_a_line_is_no_drift),
		cmocka_unit_test(test_lies_are_found),
		cmocka_unit_test(test_many_ties_are_thinned),
		cmocka_unit_test(test_the_better_bound_counts),
		cmocka_unit_test(test_ptp_counts_if_it_is_best),
		cmocka_unit_test(test_clocks_that_are_not_true_do_not_count),
		cmocka_unit_test(test_all_ties_are_stored),
		cmocka_unit_test(test_a_machine_does_not_name_itself),
		cmocka_unit_test(test_a_damaged_chunk_is_said),
		cmocka_unit_test(test_wall_clocks_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
