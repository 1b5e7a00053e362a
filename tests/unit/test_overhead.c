/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The events that a recording drops to save CPU time, their order, and when it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/capture/overhead.h"

static const char *const globs[] = { "irq", "sched:sched_stat*" };

struct second {
	unsigned share; /* permille */
	enum overhead_step step;
};

/* The limit is 2 %; the seconds pass one by one. */
static void expect(const struct second *seconds, size_t count, struct overhead *o)
{
	const struct capture_overhead asked = {
		.cpu_permille = 20,
		.shed = { globs, ARRAY_SIZE(globs) },
	};
	uint64_t now = 5 * NSEC_PER_SEC, spent = 300 * NSEC_PER_MSEC;

	assert_int_equal(overhead_init(o, &asked), 0);
	/* CPU time spent before the first look gives no rate. */
	assert_int_equal(overhead_judge(o, now, spent), OVERHEAD_NONE);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(
			overhead_judge(o, now + NSEC_PER_SEC / 2, spent + NSEC_PER_SEC / 2),
			OVERHEAD_NONE);
		now += NSEC_PER_SEC;
		spent += seconds[i].share * NSEC_PER_MSEC;
		assert_int_equal(overhead_judge(o, now, spent), seconds[i].step);
		assert_int_equal(o->share, seconds[i].share);
	}
}

static void below_the_limit_nothing_happens(void **state _unused_)
{
	static const struct second seconds[] = { { 20, OVERHEAD_NONE }, { 0, OVERHEAD_NONE } };
	struct overhead o;

	expect(seconds, ARRAY_SIZE(seconds), &o);
	overhead_deinit(&o);
}

static void one_reading_is_no_rate(void **state _unused_)
{
	static const struct second seconds[] = { { 20, OVERHEAD_NONE } };
	uint64_t now = 20 * NSEC_PER_SEC, spent = NSEC_PER_SEC;
	struct overhead o;

	expect(seconds, ARRAY_SIZE(seconds), &o);
	overhead_restart(&o);
	assert_int_equal(overhead_judge(&o, now, spent), OVERHEAD_NONE);
	assert_int_equal(overhead_judge(&o, now + NSEC_PER_SEC, spent + 10 * NSEC_PER_MSEC),
			 OVERHEAD_NONE);
	assert_int_equal(o.share, 10);
	overhead_deinit(&o);
}

static void precision_goes_first_then_events_in_order(void **state _unused_)
{
	static const struct second seconds[] = {
		{ 21, OVERHEAD_WIDEN }, { 30, OVERHEAD_WIDEN }, { 20, OVERHEAD_NONE },
		{ 25, OVERHEAD_SHED },	{ 10, OVERHEAD_NONE },	{ 25, OVERHEAD_SHED },
	};
	struct overhead o;

	expect(seconds, 4, &o);
	assert_string_equal(o.shed[o.shed_next - 1].glob, "irq");
	overhead_deinit(&o);
	expect(seconds, ARRAY_SIZE(seconds), &o);
	assert_string_equal(o.shed[o.shed_next - 1].glob, "sched:sched_stat*");
	overhead_deinit(&o);
}

static void it_ends_far_above_the_limit_only(void **state _unused_)
{
	static const struct second seconds[] = {
		{ 90, OVERHEAD_WIDEN }, { 90, OVERHEAD_WIDEN }, { 90, OVERHEAD_SHED },
		{ 90, OVERHEAD_SHED },	{ 40, OVERHEAD_NONE },	{ 41, OVERHEAD_NONE },
		{ 41, OVERHEAD_NONE },	{ 30, OVERHEAD_NONE },	{ 41, OVERHEAD_NONE },
		{ 90, OVERHEAD_NONE },	{ 41, OVERHEAD_END },
	};
	struct overhead o;

	expect(seconds, ARRAY_SIZE(seconds), &o);
	overhead_deinit(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(below_the_limit_nothing_happens),
		cmocka_unit_test(one_reading_is_no_rate),
		cmocka_unit_test(precision_goes_first_then_events_in_order),
		cmocka_unit_test(it_ends_far_above_the_limit_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
