/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/parse.h"

static void durations(void **state _unused_)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "10s", 10 * NSEC_PER_SEC }, { "500ms", NSEC_PER_SEC / 2 },
		{ "2m", 120 * NSEC_PER_SEC }, { "1h", 3600 * NSEC_PER_SEC },
		{ "1.5s", 1500000000 },	      { "250us", 250000 },
		{ "3", 3 * NSEC_PER_SEC },    { "0.000000001", 1 },
	};
	static const char *const bad[] = { "",	  "s",	 "-1s", "0",   "0s",   "10x",
					   "1.s", "1e3", " 1s", "1 s", "0.1ns" };
	uint64_t ns = 42, longest;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(parse_duration(good[i].text, &ns, NULL), 0);
		assert_int_equal(ns, good[i].ns);
	}
	ns = 42;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(parse_duration(bad[i], &ns, &err), -EINVAL);
		assert_non_null(err.hint);
	}
	assert_int_equal(parse_duration("300000000h", &ns, NULL), -ERANGE);
	assert_int_equal(parse_duration("99999999999999999999s", &ns, NULL), -ERANGE);
	assert_int_equal(parse_duration("99999999999999999999ns", &ns, NULL), -ERANGE);
	assert_int_equal(parse_duration("106752d", &ns, NULL), -ERANGE);
	assert_int_equal(parse_duration("106751d", &longest, NULL), 0);
	assert_int_equal(ns, 42);
}

static void sizes(void **state _unused_)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "65536", 65536 },   { "1408K", 1408 << 10 },
		{ "16M", 16 << 20 },  { "16MiB", 16 << 20 },
		{ "16mb", 16 << 20 }, { "1G", 1 << 30 },
		{ "1.5k", 1536 },     { "7B", 7 },
	};
	static const char *const bad[] = { "", "M", "-1M", "0", "16Q", "16MM", "16 M", "1iB" };
	uint64_t bytes = 42;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(parse_size(good[i].text, &bytes, NULL), 0);
		assert_int_equal(bytes, good[i].bytes);
	}
	bytes = 42;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse_size(bad[i], &bytes, NULL), -EINVAL);
	assert_int_equal(parse_size("99999999T", &bytes, NULL), -ERANGE);
	assert_int_equal(parse_size("99999999999999999999B", &bytes, NULL), -ERANGE);
	assert_int_equal(bytes, 42);
}

static void percentages(void **state _unused_)
{
	static const struct {
		const char *text;
		unsigned permille;
	} good[] = { { "2%", 20 }, { "2", 20 }, { "0.5%", 5 }, { ".5", 5 }, { "100.0%", 1000 } };
	static const char *const bad[] = { "",
					   "%",
					   "0%",
					   "0.0",
					   "100.1%",
					   "101%",
					   "-1%",
					   "0.55%",
					   "2 %",
					   "2%%",
					   "2.",
					   "1e1",
					   "18446744073709551618%" };
	unsigned permille = 42;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(parse_percent(good[i].text, &permille, NULL), 0);
		assert_int_equal(permille, good[i].permille);
	}
	permille = 42;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse_percent(bad[i], &permille, NULL), -EINVAL);
	assert_int_equal(permille, 42);
}

static void cpu_lists(void **state _unused_)
{
	static const struct {
		const char *text, *list, *mask;
		unsigned count;
	} good[] = {
		{ "0-3,8", "0-3,8", "10f", 5 },
		{ "8,0-3,2\n", "0-3,8", "10f", 5 },
		{ "", "", "0", 0 },
		{ "63-64", "63-64", "1,80000000,00000000", 2 },
		{ "31", "31", "80000000", 1 },
	};
	static const char *const bad[] = { "x", "1,", ",1", "3-1", "1-", "1 2", "1,,2", "-1" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_(cpu_set_deinit) struct cpu_set set = { 0 };
		_cleanup_buf_ struct buf list = BUF_INIT, mask = BUF_INIT;

		assert_int_equal(parse_cpu_list(good[i].text, &set, NULL), 0);
		assert_int_equal(cpu_set_count(&set), good[i].count);
		cpu_set_format(&set, &list);
		cpu_set_format_mask(&set, &mask);
		assert_string_equal(buf_string(&list), good[i].list);
		assert_string_equal(buf_string(&mask), good[i].mask);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct cpu_set set = { 0 };

		assert_int_equal(parse_cpu_list(bad[i], &set, NULL), -EINVAL);
		assert_null(set.bits);
	}
	struct cpu_set set = { 0 };

	assert_int_equal(parse_cpu_list("99999999999999999999", &set, NULL), -ERANGE);
}

static void human_forms(void **state _unused_)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	format_bytes(999, &b);
	buf_putc(&b, '|');
	format_bytes(1400000, &b);
	buf_putc(&b, '|');
	format_bytes(999999, &b);
	buf_putc(&b, '|');
	format_bytes(123456789, &b);
	buf_putc(&b, '|');
	format_count(0, &b);
	buf_putc(&b, '|');
	format_count(1234567, &b);
	buf_putc(&b, '|');
	format_duration(10020000000, &b);
	buf_putc(&b, '|');
	format_duration(3605 * NSEC_PER_SEC, &b);
	assert_string_equal(buf_string(&b),
			    "999 B|1.4 MB|1.0 MB|123 MB|0|1,234,567|10.02 s|60 min 05 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations),   cmocka_unit_test(sizes),
		cmocka_unit_test(percentages), cmocka_unit_test(cpu_lists),
		cmocka_unit_test(human_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
