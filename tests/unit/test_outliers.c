/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which boards are far from the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "report/outliers.h"

/* The boards door-0, door-1 and so on have these values; the rows as CSV. */
static char *rows_of(const uint64_t *values, size_t count)
{
	const struct report_options csv = { .form = REPORT_CSV };
	_cleanup_(outliers_freep) struct outliers *o = NULL;
	_cleanup_(table_freep) struct table *t = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct buf out = BUF_INIT;
	char board[32];

	assert_int_equal(outliers_new(&o), 0);
	for (size_t i = 0; i < count; i++) {
		snprintf(board, sizeof(board), "door-%zu", i);
		assert_int_equal(outliers_add(o, "sched", "delay", board, values[i]), 0);
	}
	assert_int_equal(outliers_table(o, &t), 0);
	assert_int_equal(table_write(t, &csv, true, &out, &err), 0);
	assert_non_null(buf_string(&out));
	return out.data;
}

#define HEAD "board,report,value,p99_ns,median_ns,mad_ns,deviations\r\n"
#define ROWS_OF(...)                                                                               \
	rows_of((const uint64_t[]){ __VA_ARGS__ },                                                 \
		sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void assert_rows(char *rows, const char *expected)
{
	assert_string_equal(rows, expected);
	free(rows);
}

static void the_farthest_comes_first(void **state _unused_)
{
	/* The median is 1000, the MAD 100: its unit is 148.26. */
	assert_rows(ROWS_OF(900, 1000, 1100, 950, 1000000, 1200, 1000),
		    HEAD "\"door-4\",\"sched\",\"delay\",1000000,1000,100,6738\r\n");
	assert_rows(ROWS_OF(900, 1000, 1100, 9000, 1, 1000000, 1000, 1000, 1100, 900, 900),
		    HEAD "\"door-5\",\"sched\",\"delay\",1000000,1000,100,6738\r\n"
			 "\"door-3\",\"sched\",\"delay\",9000,1000,100,53\r\n"
			 "\"door-4\",\"sched\",\"delay\",1,1000,100,6\r\n");
}

static void usual_differences_are_none(void **state _unused_)
{
	assert_rows(ROWS_OF(900, 1000, 1100, 950, 1300, 1200, 1000), HEAD);
	/* Differences that a histogram cannot tell, although the MAD is 0. */
	assert_rows(ROWS_OF(1000, 1000, 1000, 1000, 1008), HEAD);
	assert_rows(ROWS_OF(0, 0, 0, 0, 3), HEAD);
	assert_rows(ROWS_OF(1000, 1000, 1000, 1000, 1040),
		    HEAD "\"door-4\",\"sched\",\"delay\",1040,1000,0,4\r\n");
}

static void three_boards_are_too_few(void **state _unused_)
{
	assert_rows(ROWS_OF(1000, 1000, 1000000), HEAD);
	assert_rows(ROWS_OF(1000), HEAD);
}

static void large_values_do_not_overflow(void **state _unused_)
{
	assert_rows(ROWS_OF(UINT64_MAX - 1, UINT64_MAX - 1, UINT64_MAX - 1, UINT64_MAX - 1, 0),
		    HEAD "\"door-4\",\"sched\",\"delay\",0,18446744073709551614,0,100\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_farthest_comes_first),
		cmocka_unit_test(usual_differences_are_none),
		cmocka_unit_test(three_boards_are_too_few),
		cmocka_unit_test(large_values_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
