/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stores and boards may tell `tracectl fleet` lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "fleet/fleet_listing.h"
#include "fleet/fleet_message.h"

#define XML "<ListBucketResult><Key>a=1/b</Key>"
#define TOKEN(text) "<NextContinuationToken>" text "</NextContinuationToken>"

static int list(struct listing *l, bool is_s3, const char *text, struct error *err)
{
	_cleanup_buf_ struct buf answer = BUF_INIT, lines = BUF_INIT;
	int r;

	buf_puts(&answer, text);
	r = listing_read(&answer, is_s3, &lines, err);
	return r < 0 ? r : listing_take_lines(l, &lines, err);
}

static void a_token_is_of_the_last_part(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_listing_ struct listing l = { 0 };

	assert_int_equal(list(&l, true, XML TOKEN("a+/b=="), &err), 0);
	assert_string_equal(buf_string(&l.next), "a+/b==");
	assert_int_equal(list(&l, true, XML TOKEN(""), &err), 0);
	assert_int_equal(l.next.len, 0);
	assert_int_equal(l.count, 2);
}

/* Without them, a list would end early, and look whole. */
static void other_tokens_are_no_end(void **state _unused_)
{
	static const char *const answers[] = {
		XML TOKEN("a&amp;b"),
		XML TOKEN("a b"),
		XML TOKEN("a\x1b[2J"),
		XML TOKEN("a") TOKEN("b"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_listing_ struct listing l = { 0 };

		assert_int_equal(list(&l, true, answers[i], &err), -EBADMSG);
		assert_string_equal(err.message, "its token for the next part is none");
	}
}

static void a_long_token_is_no_end(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_listing_ struct listing l = { 0 };
	_cleanup_buf_ struct buf text = BUF_INIT;

	buf_puts(&text, XML "<NextContinuationToken>");
	for (int i = 0; i < 100000; i++)
		buf_putc(&text, 'a');
	buf_puts(&text, "</NextContinuationToken>");
	assert_int_equal(list(&l, true, buf_string(&text), &err), -EBADMSG);
}

static void names_are_plain(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_listing_ struct listing l = { 0 };

	assert_int_equal(list(&l, false,
			      "[{\"name\":\"board=a\",\"size\":99999999999999999999999},"
			      "{\"name\":\"\\u001b[2J\"},{\"name\":\"../a\"},{\"name\":\"/a\"},"
			      "{\"name\":\"a\\u0000b\"},{\"name\":\"a\\nb\"},{\"name\":7}]",
			      &err),
			 0);
	assert_int_equal(l.count, 1);
	assert_string_equal(l.items[0].name, "board=a");
	assert_int_equal(l.refused, 5);
}

static void sizes_are_numbers(void **state _unused_)
{
	static const struct {
		const char *text;
		bool is_s3;
		uint64_t size;
	} cases[] = {
		{ "[{\"size\":7,\"name\":\"a\"}]", false, 7 },
		{ "[{\"name\":\"a\",\"size\":18446744073709551614}]", false, UINT64_MAX - 1 },
		{ "[{\"name\":\"a\",\"size\":18446744073709551616}]", false, UINT64_MAX },
		{ "[{\"name\":\"a\",\"size\":-7}]", false, UINT64_MAX },
		{ "[{\"name\":\"a\",\"size\":7e1}]", false, UINT64_MAX },
		{ "[{\"name\":\"a\",\"size\":\"7\"}]", false, UINT64_MAX },
		{ "[{\"name\":\"a\"}]", false, UINT64_MAX },
		{ "<ListBucketResult><Size>1</Size><Key>a</Key><Size>7</Size>", true, 7 },
		{ "<ListBucketResult><Key>a</Key><Key>b</Key><Size>7</Size>", true, UINT64_MAX },
		{ "<ListBucketResult><Key>a</Key><Size></Size>", true, UINT64_MAX },
		{ "<ListBucketResult><Key>a</Key><Size>7 \n8</Size>", true, UINT64_MAX },
		{ "<ListBucketResult><Key>a</Key><Size>7", true, UINT64_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_listing_ struct listing l = { 0 };

		assert_int_equal(list(&l, cases[i].is_s3, cases[i].text, &err), 0);
		assert_string_equal(l.items[0].name, "a");
		assert_true(l.items[0].size == cases[i].size);
	}
}

static void a_list_ends(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_listing_ struct listing l = { .bytes = LISTING_ALL_MAX };
	_cleanup_buf_ struct buf answer = BUF_INIT;

	buf_puts(&answer, XML);
	assert_int_equal(listing_add(&l, true, &answer, &err), -EFBIG);
	assert_string_equal(err.message, "the store's list: it does not end");
}

static void lines_with_a_nul_are_refused(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_listing_ struct listing l = { 0 };
	_cleanup_buf_ struct buf lines = BUF_INIT;

	buf_append(&lines, "n1 a\0b\nn1 c\n", 12);
	assert_int_equal(listing_take_lines(&l, &lines, &err), -EBADMSG);
	assert_int_equal(l.count, 0);
}

static void a_list_is_bounded(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_listing_ struct listing l = { .count = LISTING_NAMES_MAX };

	assert_int_equal(list(&l, true, XML, &err), -EFBIG);
	assert_non_null(strstr(err.message, "more than 1000000 names"));
	l.count = 0;
}

static int read_status(struct board_status *ret, uint64_t order, const char *text)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r;

	*ret = (struct board_status){ 0 };
	r = board_status_read(ret, order, text, strlen(text), &err);
	assert_true(r == 0 || err.message);
	return r;
}

static void a_status_is_of_that_order(void **state _unused_)
{
	static const char *const others[] = { "17.5", "1.7e1", "-17", "170", "\"17\"" };
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct board_status s;

	assert_int_equal(read_status(&s, 17,
				     "{\"state\":\"alive\",\"orders\":[{\"serial\":17,\"outcome\":"
				     "\"refused\",\"reason\":\"of \\u001b\"},"
				     "{\"serial\":18,\"outcome\":\"done\"}]}"),
			 0);
	assert_string_equal(s.state, "alive");
	assert_string_equal(s.outcome, "refused");
	assert_string_equal(s.reason, "of \x1b");
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		buf_clear(&text);
		buf_printf(&text, "{\"orders\":[{\"serial\":%s,\"outcome\":\"done\"}]}", others[i]);
		assert_int_equal(read_status(&s, 17, buf_string(&text)), 0);
		assert_string_equal(s.outcome, "");
	}
	assert_int_equal(read_status(&s, UINT64_MAX,
				     "{\"orders\":[{\"serial\":99999999999999999999999,"
				     "\"outcome\":\"done\"}]}"),
			 0);
	assert_string_equal(s.outcome, "");
}

static void other_texts_are_no_status(void **state _unused_)
{
	static const char *const texts[] = {
		"",
		"[]",
		"7",
		"{",
		"{}{}",
		"{\"orders\":[7]}",
		"{\"orders\":[{\"serial\":17,\"outcome\":\"done\"}",
	};
	struct board_status s;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_true(read_status(&s, 17, texts[i]) < 0);
}

static void a_deep_status_is_refused_and_a_long_word_cut(void **state _unused_)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct board_status s;

	buf_puts(&text, "{\"x\":");
	for (int i = 0; i < 1000; i++)
		buf_putc(&text, '[');
	assert_int_equal(read_status(&s, 17, buf_string(&text)), -EFBIG);
	buf_clear(&text);
	buf_puts(&text, "{\"state\":\"");
	for (int i = 0; i < 1000; i++)
		buf_putc(&text, 'a');
	buf_puts(&text, "\"}");
	assert_int_equal(read_status(&s, 17, buf_string(&text)), 0);
	assert_int_equal(strlen(s.state), STATUS_WORD_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_is_of_the_last_part),
		cmocka_unit_test(other_tokens_are_no_end),
		cmocka_unit_test(a_long_token_is_no_end),
		cmocka_unit_test(names_are_plain),
		cmocka_unit_test(sizes_are_numbers),
		cmocka_unit_test(a_list_ends),
		cmocka_unit_test(lines_with_a_nul_are_refused),
		cmocka_unit_test(a_list_is_bounded),
		cmocka_unit_test(a_status_is_of_that_order),
		cmocka_unit_test(other_texts_are_no_status),
		cmocka_unit_test(a_deep_status_is_refused_and_a_long_word_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
