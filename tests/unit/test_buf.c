/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"

static void append_grows(void **state _unused_)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "%03d", i);
	assert_int_equal(b.len, 3000);
	assert_int_equal(buf_error(&b), 0);
	assert_memory_equal(b.data + 2997, "999", 3);
	assert_string_equal(buf_string(&b) + 2994, "998999");
	assert_int_equal(b.len, 3000);
}

static void impossible_size_is_a_sticky_failure(void **state _unused_)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	buf_puts(&b, "x");
	assert_null(buf_reserve(&b, SIZE_MAX));
	buf_puts(&b, "y");
	assert_int_equal(buf_error(&b), -ENOMEM);
	assert_null(buf_string(&b));
	buf_clear(&b);
	assert_int_equal(buf_error(&b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(append_grows),
		cmocka_unit_test(impossible_size_is_a_sticky_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
