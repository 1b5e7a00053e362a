/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/format_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "print/conversion.h"

static const uint64_t values[] = {
	0,
	1,
	9,
	10,
	11,
	99,
	100,
	101,
	999,
	1000,
	9999,
	10000,
	99999,
	100000,
	999999,
	1000000,
	9999999,
	10000000,
	99999999,
	100000000,
	999999999,
	1000000000,
	UINT32_MAX,
	1ULL << 32,
	9999999999,
	123456789012345678ULL,
	1000000000000000000ULL,
	INT64_MAX,
	1ULL << 63,
	UINT64_MAX,
	UINT64_MAX - 8,
};

static void test_plain(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char ours[64], expected[64];

		*format_dec(ours, values[i]) = '\0';
		snprintf(expected, sizeof(expected), "%llu", (unsigned long long)values[i]);
		assert_string_equal(ours, expected);
		*format_hex(ours, values[i]) = '\0';
		snprintf(expected, sizeof(expected), "%llx", (unsigned long long)values[i]);
		assert_string_equal(ours, expected);
		*format_hex_padded(ours, values[i], 16) = '\0';
		snprintf(expected, sizeof(expected), "%016llx", (unsigned long long)values[i]);
		assert_string_equal(ours, expected);
	}
}

static void check(const char *format, uint64_t v, const char *expected)
{
	struct conversion spec;
	char ours[256];

	assert_int_equal(conversion_parse(format, 8, &spec), strlen(format));
	assert_int_equal(spec.kind, 'd');
	*format_number(ours, v, &spec.format) = '\0';
	assert_string_equal(ours, expected);
}

/* C is the reference for what the kernel prints like C. */
static void test_like_c(void **state)
{
	static const char *const formats[] = {
		"%lld",	    "%5lld",   "%-5lld", "%05lld",  "%+lld",   "% lld",	 "%.5lld",
		"%12.7lld", "%llu",    "%20llu", "%-20llu", "%020llu", "%llx",	 "%16llx",
		"%016llx",  "%-16llx", "%llX",	 "%llo",    "%5llo",   "%.3llx", "%25.20lld",
	};

	(void)state;
	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			char expected[256];

			/* NOLINTNEXTLINE: the formats are the table above. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(expected, sizeof(expected), formats[f],
				 (unsigned long long)values[i]);
#pragma GCC diagnostic pop
			check(formats[f], values[i], expected);
		}
}

/* Formats that the kernel prints in its own way (lib/vsprintf.c). */
static void test_unlike_c(void **state)
{
	(void)state;
	check("%#x", 0, "0x0");
	check("%#x", 255, "0xff");
	check("%#X", 255, "0XFF");
	check("%#010x", 255, "0x000000ff");
	check("%#o", 0, "0");
	check("%#o", 8, "010");
	check("%0x", 10, "a");
	check("%06ld", (uint64_t)-12, "-00012");
	check("%+d", 0, "+0");
}

static void test_conversions(void **state)
{
	struct conversion c;

	(void)state;
	assert_int_equal(conversion_parse("%-*.*s,", 8, &c), 6);
	assert_true(c.kind == 's' && c.star_width && c.star_precision && c.format.left);
	assert_int_equal(conversion_parse("%pISpc]", 8, &c), 6);
	assert_true(c.kind == 'p' && c.suffix_len == 4 && !memcmp(c.suffix, "ISpc", 4));
	assert_int_equal(conversion_parse("%hhu", 8, &c), 4);
	assert_int_equal(c.size, 1);
	assert_int_equal(conversion_parse("%lu", 4, &c), 3);
	assert_int_equal(c.size, 4);
	assert_int_equal(conversion_parse("%zx", 8, &c), 3);
	assert_int_equal(c.size, 8);
	assert_int_equal(conversion_parse("%", 8, &c), 1);
	assert_int_equal(c.kind, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_like_c),
		cmocka_unit_test(test_unlike_c),
		cmocka_unit_test(test_conversions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
