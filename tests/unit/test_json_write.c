/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"

static void strings_of_any_bytes_are_valid(void **state _unused_)
{
	unsigned seed = 1;

	for (int i = 0; i < 20000; i++) {
		_cleanup_buf_ struct buf b = BUF_INIT;
		char text[40];
		size_t len = seed % sizeof(text);
		json_t *json;

		for (size_t j = 0; j < len; j++) {
			seed = seed * 1103515245 + 12345;
			/* Mostly bytes of UTF-8 sequences. */
			text[j] = (char)(seed >> 16 & 1 ? 0x80 | seed >> 17 : seed >> 20);
		}
		seed = seed * 1103515245 + 12345;
		buf_putc(&b, '"');
		if (i & 1)
			json_escape(&b, text, len);
		else
			json_escape_line(&b, text, len);
		buf_putc(&b, '"');
		json = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		assert_non_null(json);
		json_decref(json);
	}
}

static void check(const char *text, const char *plain, const char *line, size_t units)
{
	_cleanup_buf_ struct buf a = BUF_INIT, b = BUF_INIT;

	json_escape(&a, text, strlen(text));
	assert_string_equal(buf_string(&a), plain);
	assert_int_equal(json_escape_line(&b, text, strlen(text)), units);
	assert_string_equal(buf_string(&b), line);
}

static void escapes(void **state _unused_)
{
	check("a\"b\\c", "a\\\"b\\\\c", "a\\\"b\\\\c", 5);
	check("a\nb\tc", "a\\u000ab\\tc", "a b\\tc", 5);
	check("\x1b[0m", "\\u001b[0m", "\\\\x1b[0m", 7);
	check("\xc2\x9b;\xc2\xa0", "\\u009b;\xc2\xa0", "\xc2\x9b;\xc2\xa0", 3);
	check("x\xc2", "x\xef\xbf\xbd", "x\xef\xbf\xbd", 2);
	check("\xc3\xa4", "\xc3\xa4", "\xc3\xa4", 1);
	check("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", 2);
	/* Overlong, a surrogate, beyond Unicode, truncated. */
	check("\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd", 2);
	check("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
	      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 3);
	check("\xf4\x90", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd", 2);
	check("x\xe2\x82", "x\xef\xbf\xbd\xef\xbf\xbd", "x\xef\xbf\xbd\xef\xbf\xbd", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_of_any_bytes_are_valid),
		cmocka_unit_test(escapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
