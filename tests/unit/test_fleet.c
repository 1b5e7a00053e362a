/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operators and boards share these: names of results, and the text of an order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fleet/order.h"
#include "fleet/result_name.h"

#define HASH "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"

static void read_hex(const char *text, unsigned char hash[RESULT_HASH_SIZE])
{
	for (size_t i = 0; i < RESULT_HASH_SIZE; i++)
		assert_int_equal(sscanf(text + 2 * i, "%2hhx", &hash[i]), 1);
}

static void a_path_names_a_result(void **state _unused_)
{
	unsigned char hash[RESULT_HASH_SIZE];
	struct result_name name;

	assert_true(result_name_parse("a b/../x/fleet=doors/order=17/board=door-1/" HASH ".json",
				      &name));
	assert_string_equal(name.fleet, "doors");
	assert_string_equal(name.board, "door-1");
	assert_int_equal(name.order, 17);
	assert_string_equal(name.file, HASH ".json");
	assert_int_equal(name.kind, RESULT_REPORTS);
	read_hex(HASH, hash);
	assert_true(result_name_fits(&name, hash));
	hash[31] ^= 1;
	assert_false(result_name_fits(&name, hash));
	assert_true(result_name_parse("fleet=f/order=18446744073709551615/board=b/" HASH ".traced",
				      &name));
	assert_int_equal(name.kind, RESULT_CAPTURE);
	assert_true(result_name_parse("fleet=f/order=1/board=b/" HASH ".ndjson.zst", &name));
	assert_true(name.kind == RESULT_REPORTS && name.is_packed && !name.segment);
	assert_string_equal(name.file, HASH ".ndjson.zst");
	assert_true(result_name_parse("fleet=f/order=1/board=b/" HASH ".0012.json", &name));
	assert_true(name.kind == RESULT_CAPTURE && name.segment == 12);
	assert_true(
		result_name_parse("fleet=f/order=1/board=b/" HASH ".9999999.pftrace.gz", &name));
	assert_true(name.kind == RESULT_CAPTURE && name.segment == 9999999);
	assert_string_equal(name.file, HASH ".9999999.pftrace.gz");
}

static void other_paths_name_none(void **state _unused_)
{
	static const char *const paths[] = {
		"",
		"/",
		HASH ".json",
		"fleet=f/order=1/board=b/",
		"fleet=f/order=1/board=b/" HASH ".html",
		"fleet=f/order=1/board=b/" HASH ".ndjson",
		"fleet=f/order=1/board=b/" HASH ".0000.json",
		"fleet=f/order=1/board=b/" HASH ".001.json",
		"fleet=f/order=1/board=b/" HASH ".00001.json",
		"fleet=f/order=1/board=b/" HASH ".10000000.json",
		"fleet=f/order=1/board=b/" HASH ".0001.traced",
		"fleet=f/order=1/board=b/" HASH ".0001",
		"fleet=f/order=1/board=b/" HASH "0001.json",
		"fleet=f/order=1/board=b/" HASH ".zst",
		"fleet=f/order=1/board=b/" HASH,
		"fleet=f/order=1/board=b/x" HASH ".json",
		"fleet=f/order=1/board=b/0" HASH ".json",
		"fleet=f/order=1/board=b/../" HASH ".json",
		"fleet=f/order=1/board=../" HASH ".json",
		"fleet=f/order=1/board=/" HASH ".json",
		"fleet=f/order=1/board=a b/" HASH ".json",
		"fleet=f/order=1/board=\033/" HASH ".json",
		"fleet=f/order=0/board=b/" HASH ".json",
		"fleet=f/order=-1/board=b/" HASH ".json",
		"fleet=f/order=18446744073709551616/board=b/" HASH ".json",
		"fleet=f/board=b/" HASH ".json",
		"order=1/board=b/" HASH ".json",
		"xfleet=f/order=1/board=b/" HASH ".json",
	};
	struct result_name name;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (result_name_parse(paths[i], &name))
			fail_msg("taken: %s", paths[i]);
}

static void what_is_put_is_parsed(void **state _unused_)
{
	static const char *const events[] = { "sched:*", "irq:*" }, *const reports[] = {
		"sched,irq"
	};
	_cleanup_order_ struct order order = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;

	order_begin(&text);
	assert_int_equal(order_put(&text, "serial", "7", &err), 0);
	assert_int_equal(order_put(&text, "fleet", "doors", &err), 0);
	assert_int_equal(order_put(&text, "group", NULL, &err), 0);
	assert_int_equal(order_put(&text, "expires", "2026-11-28T13:00:00Z", &err), 0);
	assert_int_equal(order_put(&text, "duration", "1s", &err), 0);
	assert_int_equal(order_put_words(&text, "events", events, 2, &err), 0);
	assert_int_equal(order_put_words(&text, "reports", reports, 1, &err), 0);
	assert_int_equal(order_put_words(&text, "labels", NULL, 0, &err), 0);
	assert_int_equal(order_parse(&order, text.data, text.len, &err), 0);
	assert_int_equal(order.events.count, 2);
	assert_int_equal(order.reports.count, 2);
	assert_null(order.group);
}

/* SQL is longer than a line of an INI file. Blanks in its texts stay. */
static void a_long_text_is_parsed(void **state _unused_)
{
	_cleanup_order_ struct order order = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT, sql = BUF_INIT, whole = BUF_INIT;

	order_begin(&text);
	assert_int_equal(order_put(&text, "serial", "7", &err), 0);
	assert_int_equal(order_put(&text, "fleet", "doors", &err), 0);
	assert_int_equal(order_put(&text, "expires", "2026-11-28T13:00:00Z", &err), 0);
	assert_int_equal(order_put(&text, "duration", "1s", &err), 0);
	buf_puts(&sql, "SELECT");
	for (int i = 0; i < 100; i++)
		buf_printf(&sql, " #%d \"a   b\",", i);
	buf_puts(&sql, " ; x");
	assert_int_equal(order_put_text(&text, "sql", buf_string(&sql), &err), -EINVAL);
	sql.len -= strlen(" ; x");
	assert_int_equal(order_put_text(&text, "sql", buf_string(&sql), &err), 0);
	assert_int_equal(order_put(&text, "as", "x", &err), 0);
	assert_int_equal(order_put_text(&text, "hist", "\n x:keys=y\n\tif y > 3", &err), 0);
	assert_int_equal(order_put_text(&text, "filter", NULL, &err), 0);
	assert_int_equal(order_put_text(&text, "until", " \n\t", &err), -EINVAL);
	assert_non_null(strstr(err.message, "empty"));
	assert_int_equal(order_put_text(&text, "until", ";x", &err), -EINVAL);
	assert_non_null(strstr(err.message, "\" ;\""));
	for (int i = 0; i < 190; i++)
		buf_putc(&whole, 'x');
	assert_int_equal(order_put_text(&text, "until", buf_string(&whole), &err), -EINVAL);
	assert_non_null(strstr(err.message, "without a single blank"));
	assert_int_equal(order_put(&text, "reports", "hist", &err), 0);
	for (const char *line = buf_string(&text); *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 198);
	if (order_parse(&order, text.data, text.len, &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(order.sql, buf_string(&sql));
	assert_string_equal(order.hist, "x:keys=y if y > 3");
}

/* Neither a second key nor a comment can hide in a value. */
static void a_value_is_one_line(void **state _unused_)
{
	static const char *const values[] = { "a\nb", "a\rb", "a ;b", "a\t;b" };

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf text = BUF_INIT;

		assert_int_equal(order_put(&text, "filter", values[i], &err), -EINVAL);
		assert_int_equal(text.len, 0);
	}
}

/* A value that a board would refuse is refused before it is put. */
static void a_value_fits_its_key(void **state _unused_)
{
	static const char *const bad[][2] = { { "serial", "0" },    { "fleet", "a b" },
					      { "share", "0" },	    { "share", "0.0" },
					      { "share", "100.1" }, { "expires", "2026" },
					      { "window", "x" },    { "capture", "maybe" },
					      { "labels", "door" }, { "events", "sched" },
					      { "reports", "a/b" }, { "salt", "" } };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf text = BUF_INIT;

		assert_int_equal(order_put(&text, bad[i][0], bad[i][1], &err), -EINVAL);
		assert_non_null(err.message);
		assert_int_equal(text.len, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_names_a_result), cmocka_unit_test(other_paths_name_none),
		cmocka_unit_test(what_is_put_is_parsed), cmocka_unit_test(a_long_text_is_parsed),
		cmocka_unit_test(a_value_is_one_line),	 cmocka_unit_test(a_value_fits_its_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
