/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Readings of two network cards' PTP clocks make a tie. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "hosts/phc.h"

#define TAI UINT64_C(1790000037000000000)
#define MS NSEC_PER_MSEC

static void test_an_option(void **state _unused_)
{
	static const char *const wrong[] = { "",	   "/dev/ptp0",	    ",200ns",
					     "/dev/ptp0,", "/dev/ptp0,0ns", "/dev/ptp0,2s",
					     "/dev/ptp0,x" };
	uint64_t bound;

	assert_int_equal(phc_parse("/dev/ptp0,200ns", &bound, NULL), 0);
	assert_int_equal(bound, 200);
	assert_int_equal(phc_parse("/a,b,1.5us", &bound, NULL), 0);
	assert_int_equal(bound, 1500);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_true(phc_parse(wrong[i], &bound, NULL) < 0);
}

static void test_what_is_no_clock(void **state _unused_)
{
	struct true_time t;
	uint64_t bound;

	assert_int_equal(phc_open("/dev/null,1us", &bound, NULL), -EINVAL);
	assert_int_equal(phc_open("/nowhere,1us", &bound, NULL), -ENOENT);
	phc_read(-EBADF, &t);
	assert_int_equal(t.utc, 0);
}

/* Our PHC is 1000 ppm fast, as if nobody had ever set its rate: 2 ms are 2002 us. */
static const struct true_time before = { 5000 * MS, TAI, 700 };
static const struct true_time after = { 5002 * MS, TAI + 2002000, 900 };

static void test_a_tie(void **state _unused_)
{
	const struct true_time far = { 77 * MS, TAI + 1001000, 400 };
	struct host_tie tie;

	assert_true(phc_tie(&tie, &before, &after, &far, 200));
	assert_int_equal(tie.far, 77 * MS);
	assert_in_range(tie.near, 5001 * MS - 1, 5001 * MS + 1);
	/* Both readings, what the user states, and 1 ppm of 2 ms. */
	assert_in_range(tie.bound, 900 + 400 + 200 + 2, 900 + 400 + 200 + 4);
}

static void test_a_reading_at_the_edge(void **state _unused_)
{
	struct true_time far = { 77 * MS, TAI - 1200, 400 };
	struct host_tie tie;

	/* The far clock may be late by 200 ns, its reading by 400, ours by 700. */
	assert_true(phc_tie(&tie, &before, &after, &far, 200));
	assert_int_equal(tie.near, 5000 * MS);
	far.utc = TAI - 1301;
	assert_false(phc_tie(&tie, &before, &after, &far, 200));
	far.utc = after.utc + 1500;
	assert_true(phc_tie(&tie, &before, &after, &far, 200));
	assert_in_range(tie.near, 5002 * MS - 1, 5002 * MS);
	far.utc = after.utc + 1501;
	assert_false(phc_tie(&tie, &before, &after, &far, 200));
}

static void test_other_readings_make_none(void **state _unused_)
{
	const struct true_time far = { 77 * MS, TAI + 1001000, 400 }, none = { .boot = 77 * MS };
	const struct true_time back = { 5002 * MS, TAI - 1, 900 };
	const struct true_time absurd = { 77 * MS, TAI + 1001000, UINT64_MAX - 100 };
	struct host_tie tie;

	assert_false(phc_tie(&tie, &before, &after, &none, 200));
	assert_false(phc_tie(&tie, &none, &after, &far, 200));
	assert_false(phc_tie(&tie, &before, &none, &far, 200));
	/* It was set back. */
	assert_false(phc_tie(&tie, &before, &back, &far, 200));
	/* The sum of the bounds would be small. */
	assert_false(phc_tie(&tie, &before, &after, &absurd, 200));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_option),
		cmocka_unit_test(test_what_is_no_clock),
		cmocka_unit_test(test_a_tie),
		cmocka_unit_test(test_a_reading_at_the_edge),
		cmocka_unit_test(test_other_readings_make_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
