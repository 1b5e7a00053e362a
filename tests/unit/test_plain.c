/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/plain.h"

/* The reference: byte by byte, at every position within the blocks. */
static void every_byte_that_is_not_plain_is_found(void **state)
{
	char text[72];

	(void)state;
	for (int c = 0; c < 256; c++) {
		bool plain = c >= ' ' && c < 0x7f && c != '"' && c != '\\';

		for (size_t len = 1; len <= sizeof(text); len++)
			for (size_t at = 0; at < len; at++) {
				memset(text, 'a', sizeof(text));
				text[at] = (char)c;
				assert_ptr_equal(plain_end(text, text + len),
						 plain ? text + len : text + at);
				assert_int_equal(is_plain(text, len), plain);
			}
	}
}

static void bytes_outside_are_not_read(void **state)
{
	char text[64];

	(void)state;
	memset(text, '"', sizeof(text));
	memset(text + 8, 'a', 40);
	for (size_t len = 0; len <= 40; len++) {
		assert_true(is_plain(text + 8, len));
		assert_true(is_plain(text + 48 - len, len));
		assert_ptr_equal(plain_end(text + 8, text + 8 + len), text + 8 + len);
	}
	assert_false(is_plain(text + 8, 41));
	assert_false(is_plain(text + 7, 41));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_that_is_not_plain_is_found),
		cmocka_unit_test(bytes_outside_are_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
