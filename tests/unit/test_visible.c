/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/visible.h"

static void assert_shown(const char *text, size_t max, const char *shown)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	buf_puts(&out, "> ");
	buf_visible(&out, text, max);
	assert_string_equal(buf_string(&out) + 2, shown);
}

static void plain_text_stays(void **state _unused_)
{
	assert_shown("", 10, "");
	assert_shown("sched:sched_switch", 100, "sched:sched_switch");
	assert_shown("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 100,
		     "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

static void nothing_reaches_the_terminal(void **state _unused_)
{
	assert_shown("\033[2J\a", 100, "\\x1b[2J\\x07");
	assert_shown("done\ntracectl: all is well\r", 100, "done\\ntracectl: all is well\\x0d");
	assert_shown("\t\x7f", 100, "\\t\\x7f");
	/* CSI as one character of UTF-8, and as a single invalid byte. */
	assert_shown("\xc2\x9b"
		     "2J",
		     100, "\\xc2\\x9b2J");
	assert_shown("\x9b"
		     "2J",
		     100, "\\x9b2J");
	assert_shown("\xe2\x82", 100, "\\xe2\\x82");
}

static void length_is_limited(void **state _unused_)
{
	assert_shown("0123456789", 10, "0123456789");
	assert_shown("0123456789a", 10, "0123456...");
	/* Neither a character nor an escape sequence is split. */
	assert_shown("01234\xe2\x82\xac\xe2\x82\xac", 10, "01234...");
	assert_shown("01234\a\a", 10, "01234...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_text_stays),
		cmocka_unit_test(nothing_reaches_the_terminal),
		cmocka_unit_test(length_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
