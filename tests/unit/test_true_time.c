/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* adjtimex(2) describes a clock; two such clocks make a tie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "hosts/true_time.h"

/* A clock that chrony keeps. */
static const struct timex good = {
	.status = STA_NANO,
	.maxerror = 700,
	.esterror = 12,
	.time = { .tv_sec = 1790000000, .tv_usec = 123456789 },
};

static struct true_time taken(struct timex t, int state)
{
	struct true_time time;

	true_time_take(&time, &t, state, 5000, 5301);
	return time;
}

static void test_a_synchronised_clock(void **state _unused_)
{
	struct true_time t = taken(good, TIME_OK);
	struct timex micro = good;

	assert_int_equal(t.boot, 5150);
	assert_int_equal(t.utc, UINT64_C(1790000000123456789));
	/* 700 us, 2 for two numbers that are cut, 15 for a second, and half of the call's time. */
	assert_int_equal(t.bound, 717000 + 151);
	micro.status = 0;
	micro.time.tv_usec = 123456;
	assert_int_equal(taken(micro, TIME_OK).utc, UINT64_C(1790000000123456000));
}

static void test_other_clocks_are_not(void **state _unused_)
{
	const int states[] = { TIME_ERROR, TIME_INS, TIME_DEL, TIME_OOP, TIME_WAIT, -1 };
	const int status[] = { STA_UNSYNC, STA_CLOCKERR };
	const struct {
		long maxerror, esterror;
	} errors[] = { { 0, 0 }, { 500, 0 }, { 500, 16000000 }, { -1, 1 } };
	struct timex t;

	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		assert_int_equal(taken(good, states[i]).utc, 0);
	for (size_t i = 0; i < ARRAY_SIZE(status); i++) {
		t = good;
		t.status |= status[i];
		assert_int_equal(taken(t, TIME_OK).utc, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		t = good;
		t.maxerror = errors[i].maxerror;
		t.esterror = errors[i].esterror;
		assert_int_equal(taken(t, TIME_OK).utc, 0);
	}
	/* Its exchanges still have the machine's time. */
	assert_int_equal(taken(good, TIME_ERROR).boot, 5150);
}

static void test_two_clocks_make_a_tie(void **state _unused_)
{
	const struct true_time near = { 1000000000, 1790000000000000000, 300000 };
	const struct true_time far = { 50000, 1789999999999000000, 40000 };
	const struct true_time unknown = { .boot = 50000 };
	const struct true_time absurd = { 50000, 1789999999999000000, UINT64_MAX - 299999 };
	struct host_tie tie;

	/* The far machine was read 1 ms earlier. */
	assert_true(true_time_tie(&tie, &near, &far));
	assert_int_equal(tie.far, 50000);
	assert_int_equal(tie.near, 999000000);
	assert_int_equal(tie.bound, 340000);
	assert_false(true_time_tie(&tie, &near, &unknown));
	assert_false(true_time_tie(&tie, &unknown, &far));
	/* The sum of the bounds would be 1 ns. */
	assert_false(true_time_tie(&tie, &near, &absurd));
}

static void test_this_machine_is_read(void **state _unused_)
{
	uint64_t before = now_ns(CLOCK_BOOTTIME);
	struct true_time t;

	true_time_read(&t);
	assert_true(t.boot >= before && t.boot <= now_ns(CLOCK_BOOTTIME));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_synchronised_clock),
		cmocka_unit_test(test_other_clocks_are_not),
		cmocka_unit_test(test_two_clocks_make_a_tie),
		cmocka_unit_test(test_this_machine_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
