/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines and JSON within a page: no text of a trace ends a block, and none is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "formats/html/html.h"

/* Text that stands before belongs to another line, and stays. */
static void assert_line(const char *text, size_t len, const char *expected, uint64_t expected_units)
{
	_cleanup_buf_ struct buf b = BUF_INIT, scratch = BUF_INIT;
	uint64_t units = 5;

	buf_puts(&b, "</script>\n");
	buf_append(&b, text, len);
	assert_int_equal(html_end_line(&b, strlen("</script>\n"), &scratch, &units), 0);
	assert_string_equal(buf_string(&b) + strlen("</script>\n"), expected);
	assert_int_equal(units - 5, expected_units);
}

static void lines_stay_in_their_block(void **state _unused_)
{
	static const struct {
		const char *text, *line;
	} cases[] = {
		{ "          <idle>-0  \"a\\b\"\tc", "          <idle>-0  \"a\\b\"\tc\n" },
		{ "x </script> y", "x <\\/script> y\n" },
		{ "</SCRIPT\n>", "<\\/SCRIPT >\n" },
		{ "<script><!--", "<\\script><\\!--\n" },
		/*
		 * Text that already looks escaped gets one more backslash, so that it can be told
		 * apart.
		 */
		{ "<\\/script <\\\\!--", "<\\\\/script <\\\\\\!--\n" },
		{ "<!- </scrip <b> ]]> &amp;", "<!- </scrip <b> ]]> &amp;\n" },
		{ "<", "<\n" },
		{ "a\nb\rc\x1b\x7f", "a b\\x0dc\\x1b\\x7f\n" },
		{ "", "\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_line(cases[i].text, strlen(cases[i].text), cases[i].line,
			    strlen(cases[i].line));
	assert_line("a\0b", 3, "a\\x00b\n", 7);
	assert_line("\xc3\xa4 \xff\xc3 \xf0\x9f\x98\x80", 10,
		    "\xc3\xa4 " UTF8_REPLACEMENT UTF8_REPLACEMENT " \xf0\x9f\x98\x80\n", 8);
}

/* Removes one backslash, as the viewer does. */
static void restore(char *line)
{
	char *to = line;

	for (const char *p = line; *p;) {
		const char *q = p + 1;

		*to++ = *p++;
		if (to[-1] != '<')
			continue;
		while (*q == '\\')
			q++;
		if (q > p && (!strncasecmp(q, "/script", 7) || !strncasecmp(q, "script", 6) ||
			      !strncmp(q, "!--", 3)))
			p++;
	}
	*to = 0;
}

static void any_line_comes_back(void **state _unused_)
{
	static const char *const pieces[] = { "<",   "\\",	"/script", "script",
					      "!--", "/SCRIPT", ">",	   "a" };
	unsigned seed = 1;

	for (int i = 0; i < 20000; i++) {
		_cleanup_buf_ struct buf before = BUF_INIT, after = BUF_INIT, scratch = BUF_INIT;
		uint64_t units = 0;

		for (int j = 0; j < 8; j++) {
			seed = seed * 1103515245 + 12345;
			buf_puts(&before, pieces[seed >> 16 & 7]);
		}
		buf_append(&after, before.data, before.len);
		assert_int_equal(html_end_line(&after, 0, &scratch, &units), 0);
		assert_int_equal(units, after.len);
		buf_string(&after);
		assert_null(strcasestr(after.data, "</script"));
		assert_null(strcasestr(after.data, "<script"));
		assert_null(strstr(after.data, "<!--"));
		restore(after.data);
		buf_putc(&before, '\n');
		assert_string_equal(after.data, buf_string(&before));
	}
}

static void json_has_no_markup(void **state _unused_)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	size_t since = 0;

	html_hide_markup(&b, &since);
	assert_int_equal(b.len, 0);
	buf_puts(&b, "{\"a\":1}");
	html_hide_markup(&b, &since);
	assert_string_equal(buf_string(&b), "{\"a\":1}");
	buf_clear(&b);
	buf_puts(&b, "<{\"</script>\":\"<<\"}<");
	html_hide_markup(&b, &since);
	assert_string_equal(buf_string(&b),
			    "\\u003c{\"\\u003c/script>\":\"\\u003c\\u003c\"}\\u003c");
}

/* Divides lines that come in pieces of `step` bytes. */
static void divide(struct buf *out, size_t lines, size_t step,
		   void (*rewrite)(struct buf *b, size_t *since))
{
	_cleanup_buf_ struct buf all = BUF_INIT, piece = BUF_INIT;
	size_t since = 0;

	for (size_t i = 0; i < lines; i++)
		buf_printf(&all, "%0*zu\n", (int)(i * 37 % 200) + 1, i);
	for (size_t at = 0; at < all.len; at += step) {
		buf_clear(&piece);
		buf_append(&piece, all.data + at, MIN(step, all.len - at));
		rewrite(&piece, &since);
		buf_append(out, piece.data, piece.len);
	}
}

/* Elements end with lines, and where they end does not depend on the pieces. */
static void long_blocks_are_divided(void **state _unused_)
{
	_cleanup_buf_ struct buf text = BUF_INIT, other = BUF_INIT, more = BUF_INIT;
	size_t elements = 1, longest = 0;
	const char *last;

	divide(&text, 30000, SIZE_MAX / 2, html_divide_text);
	divide(&other, 30000, 65537, html_divide_text);
	divide(&more, 30000, 262144, html_divide_more);
	assert_string_equal(buf_string(&other), buf_string(&text));
	assert_true(more.len < text.len);
	last = text.data;
	for (const char *p; (p = strstr(last, HTML_TEXT_NEXT)); elements++) {
		assert_int_equal(p[-1], '\n');
		longest = MAX(longest, (size_t)(p - last));
		last = p + strlen(HTML_TEXT_NEXT);
	}
	assert_int_equal(elements, 4);
	assert_in_range(longest, HTML_ELEMENT_BYTES, HTML_ELEMENT_BYTES + 300);
	assert_null(strstr(text.data, "</script>"));
}

/* The markers that readers search for occur once, at the right place. */
static void the_page_has_its_parts(void **state _unused_)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	const char *text, *policy;

	html_put_page(&b);
	assert_null(strstr(buf_string(&b), HTML_TEXT_BEGIN));
	assert_null(strstr(buf_string(&b), HTML_MORE_BEGIN));
	buf_puts(&b, HTML_TEXT_BEGIN);
	text = buf_string(&b);
	assert_memory_equal(text, "<!DOCTYPE html>\n", 16);
	assert_int_equal(b.len, html_page_len + strlen(HTML_TEXT_BEGIN));
	assert_string_equal(strstr(text, HTML_TEXT_BEGIN), HTML_TEXT_BEGIN);
	policy = strstr(text, "default-src 'none'; ");
	assert_non_null(policy);
	assert_non_null(strstr(policy, "base-uri 'none'; form-action 'none'; "));
	assert_non_null(strstr(policy, "script-src 'sha256-"));
	assert_non_null(strstr(policy, "style-src 'sha256-"));
	for (size_t i = 0; i < html_page_len; i++)
		assert_true(text[i] != '\r');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_stay_in_their_block),
		cmocka_unit_test(any_line_comes_back),
		cmocka_unit_test(json_has_no_markup),
		cmocka_unit_test(long_blocks_are_divided),
		cmocka_unit_test(the_page_has_its_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
