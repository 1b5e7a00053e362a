/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/wide.h"

static void test_mul_div(void **state _unused_)
{
	static const struct {
		uint64_t a, b, c, is;
	} known[] = {
		{ 0, 0, 1, 0 },
		{ UINT64_MAX, 1, 1, UINT64_MAX },
		{ 1, UINT64_MAX, UINT64_MAX, 1 },
		{ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX },
		{ UINT64_MAX, UINT64_MAX - 1, UINT64_MAX, UINT64_MAX - 1 },
		{ UINT64_C(1) << 63, 2, 4, UINT64_C(1) << 62 },
		{ UINT64_C(0xffffffff), UINT64_C(0xffffffff), 3, UINT64_C(0x55555554aaaaaaab) },
		{ 999999999, UINT64_C(1) << 60, 1000000000, UINT64_C(1152921503453925471) },
		{ 7, 10, 3, 23 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		assert_int_equal(mul_div(known[i].a, known[i].b, known[i].c), known[i].is);
		assert_int_equal(mul_div_by_parts(known[i].a, known[i].b, known[i].c), known[i].is);
	}
}

#ifdef __SIZEOF_INT128__
static void test_against_the_compiler(void **state _unused_)
{
	uint64_t seed = 1, v[3];

	for (int i = 0; i < 100000; i++) {
		for (int k = 0; k < 3; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			v[k] = (seed ^ seed >> 29) >> (seed >> 58);
		}
		v[2] |= 1;
		/* The quotient must fit. */
		if ((unsigned __int128)v[0] * v[1] / v[2] <= UINT64_MAX)
			assert_int_equal(mul_div_by_parts(v[0], v[1], v[2]),
					 mul_div(v[0], v[1], v[2]));
	}
}
#endif

static void test_mul_shift(void **state _unused_)
{
	static const struct {
		uint64_t a;
		uint32_t b;
		unsigned shift;
		uint64_t is;
	} known[] = {
		{ 0, UINT32_MAX, 0, 0 },
		{ 12345, 1, 0, 12345 },
		{ 1000000000, 3, 2, 750000000 },
		{ UINT64_MAX, UINT32_MAX, 32, UINT64_C(0xfffffffeffffffff) },
		{ UINT64_C(1) << 40, UINT32_C(1) << 31, 31, UINT64_C(1) << 40 },
		{ UINT64_C(1) << 63, UINT32_C(1) << 31, 63, UINT64_C(1) << 31 },
		{ UINT64_MAX, 1, 63, 1 },
		/* 2.8 GHz in ns, a day's worth. */
		{ UINT64_C(241920000000000), 766958446, 31, UINT64_C(86400000032186) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		assert_int_equal(mul_shift(known[i].a, known[i].b, known[i].shift), known[i].is);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mul_div),
		cmocka_unit_test(test_mul_shift),
#ifdef __SIZEOF_INT128__
		cmocka_unit_test(test_against_the_compiler),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
