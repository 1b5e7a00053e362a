/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs of a wait, one by one and all at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random_series.h"
#include "report/cpu_runs.h"

#define RUNS 200000 /* more than are kept for a CPU */

static uint64_t walk(struct runs_within *w, uint64_t *ret_ns)
{
	uint64_t count = 0, ns;

	*ret_ns = 0;
	for (; runs_within_next(w, &ns); count++)
		*ret_ns += ns;
	return count;
}

/* After so many runs were taken one by one. */
static void check_wait(const struct cpu_runs *r, uint64_t from, uint64_t to, unsigned taken)
{
	struct runs_within one = runs_within(r, 1, from, to), all = one;
	uint64_t one_ns, all_ns, ns;

	for (unsigned i = 0; i < taken; i++)
		assert_int_equal(!runs_within_next(&one, &ns), !runs_within_next(&all, &ns));
	assert_int_equal(walk(&one, &one_ns), runs_within_rest(&all, &all_ns));
	assert_int_equal(one_ns, all_ns);
	assert_int_equal(one.left, all.left);
	assert_true(one.left <= to - from);
	assert_null(runs_within_next(&all, &ns));
}

/* Clocks run backwards now and then, runs have gaps, waits end before the newest run. */
static void all_at_once_is_the_sum(void **state _unused_)
{
	struct cpu_runs r = { 0 };
	uint64_t now = 1000000, random = RANDOM_FIRST;
	const char runner = 0;

	for (unsigned i = 0; i < RUNS; i++) {
		uint64_t ns = random_next(&random) % 50;
		uint64_t back = random_next(&random) % 64 ? 0 : random_next(&random) % 100;
		uint64_t ago = random_next(&random) % (1U << random_next(&random) % 24);
		uint64_t gap = random_next(&random) % 4 ? 0 : random_next(&random) % 20;

		assert_int_equal(cpu_runs_keep(&r, 1, &runner, now - back, now - back + ns), 0);
		now += ns + gap;
		ago = MIN(ago, now);
		if (i % 16 == 0)
			check_wait(&r, now - ago, now - ago + random_next(&random) % (ago + 1),
				   (unsigned)(random_next(&random) % 3));
	}
	cpu_runs_deinit(&r);
}

static void a_cpu_without_runs(void **state _unused_)
{
	struct cpu_runs r = { 0 };

	check_wait(&r, 5, 10, 0);
	assert_int_equal(cpu_runs_keep(&r, 3, &r, 5, 9), 0);
	check_wait(&r, 5, 10, 1);
	cpu_runs_deinit(&r);
}

/* Time that two runs claim counts for the first of them. */
static void time_counts_once(void **state _unused_)
{
	struct cpu_runs r = { 0 };
	struct runs_within w;
	uint64_t ns;

	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(cpu_runs_keep(&r, 1, &r, 100 + 5 * i, 110 + 5 * i), 0);
	w = runs_within(&r, 1, 0, 1000);
	assert_non_null(runs_within_next(&w, &ns));
	assert_int_equal(ns, 5);
	assert_non_null(runs_within_next(&w, &ns));
	assert_int_equal(ns, 10);
	assert_int_equal(w.left, 985);
	cpu_runs_deinit(&r);
}

/* One wrong time costs the runs before it, not those that follow. */
static void a_time_far_ahead_is_forgotten(void **state _unused_)
{
	struct cpu_runs r = { 0 };
	struct runs_within w;
	uint64_t ns;

	assert_int_equal(cpu_runs_keep(&r, 1, &r, 100, UINT64_MAX - 1), 0);
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(cpu_runs_keep(&r, 1, &r, 200 + 10 * i, 210 + 10 * i), 0);
	w = runs_within(&r, 1, 0, 1000);
	assert_int_equal(runs_within_rest(&w, &ns), 2);
	assert_int_equal(ns, 20);
	cpu_runs_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_at_once_is_the_sum),
		cmocka_unit_test(a_cpu_without_runs),
		cmocka_unit_test(time_counts_once),
		cmocka_unit_test(a_time_far_ahead_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
