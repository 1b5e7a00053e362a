/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "document.h"

static void a_document_has_its_commas_and_indents(void **state _unused_)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct document j = DOCUMENT_INIT(&b);

	document_open(&j, NULL, '{');
	document_uint(&j, "n", UINT64_MAX);
	document_open(&j, "list", '[');
	document_string(&j, NULL, "a");
	document_bool(&j, NULL, true);
	document_close(&j, ']');
	document_open(&j, "none", '[');
	document_close(&j, ']');
	document_bool(&j, "b", false);
	document_close(&j, '}');
	assert_string_equal(buf_string(&b), "{\n  \"n\": 18446744073709551615,\n  \"list\": [\n"
					    "    \"a\",\n    true\n  ],\n  \"none\": [],\n"
					    "  \"b\": false\n}");
}

static void strings_are_escaped_and_made_utf8(void **state _unused_)
{
	static const struct {
		const char *in, *out;
	} table[] = {
		{ "a\"b\\c", "\"a\\\"b\\\\c\"" },
		{ "\n\x01\x7f", "\"\\u000a\\u0001\\u007f\"" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ "\xff|\xc3|\xc0\xaf|\xe2\x82",
		  "\"" UTF8_REPLACEMENT "|" UTF8_REPLACEMENT "|" UTF8_REPLACEMENT UTF8_REPLACEMENT
		  "|" UTF8_REPLACEMENT UTF8_REPLACEMENT "\"" },
		{ "\xed\xa0\x80",
		  "\"" UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT "\"" }, /* a surrogate */
		{ "\xf4\x90\x80\x80",
		  "\"" UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT
		  "\"" }, /* beyond U+10FFFF */
		{ NULL, "\"\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT;
		struct document j = DOCUMENT_INIT(&b);

		document_string(&j, NULL, table[i].in);
		assert_string_equal(buf_string(&b), table[i].out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_document_has_its_commas_and_indents),
		cmocka_unit_test(strings_are_escaped_and_made_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
