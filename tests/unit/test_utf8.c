/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/utf8.h"

static void lengths(void **state _unused_)
{
	static const struct {
		const char *text;
		size_t length;
	} cases[] = {
		{ "a", 1 },
		{ "\xc3\xa9", 2 },
		{ "\xe2\x82\xac", 3 },
		{ "\xf0\x9f\x98\x80", 4 },
		{ "\x80", 0 },
		{ "\xc0\x80", 0 },
		{ "\xe0\x80\x80", 0 },
		{ "\xed\xa0\x80", 0 },
		{ "\xf0\x80\x80\x80", 0 },
		{ "\xf4\x90\x80\x80", 0 },
		{ "\xf5\x80\x80\x80", 0 },
		{ "\xc3(", 0 },
		{ "\xe2\x82", 0 },
		{ "\xff", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(
			utf8_length((const unsigned char *)cases[i].text, strlen(cases[i].text)),
			cases[i].length);
}

static void cleaning(void **state _unused_)
{
	static const char bad[] = "caf\xc3\xa9 \xc3 \xe2\x82",
			  good[] = "caf\xc3\xa9 " UTF8_REPLACEMENT
				   " " UTF8_REPLACEMENT UTF8_REPLACEMENT;
	char out[sizeof(bad) * UTF8_GROWTH];

	*utf8_clean(out, bad, sizeof(bad) - 1) = '\0';
	assert_string_equal(out, good);
}

static void ascii(void **state _unused_)
{
	char text[40];

	memset(text, 'x', sizeof(text));
	for (size_t len = 0; len <= sizeof(text); len++)
		assert_true(utf8_is_ascii(text, len));
	for (size_t at = 0; at < sizeof(text); at++) {
		text[at] = (char)0x80;
		assert_true(utf8_is_ascii(text, at));
		assert_false(utf8_is_ascii(text, at + 1));
		assert_false(utf8_is_ascii(text, sizeof(text)));
		text[at] = 'x';
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(cleaning),
		cmocka_unit_test(ascii),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
