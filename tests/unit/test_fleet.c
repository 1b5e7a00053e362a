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

static void put_hex(const unsigned char hash[BLAKE2B_SIZE], char text[RESULT_HASH_LEN + 1])
{
	for (size_t i = 0; i < BLAKE2B_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", hash[i]);
}

/* Python's hashlib says the same. */
static void hashes_are_those_of_others(void **state _unused_)
{
	static const struct {
		size_t len;
		const char *hash;
	} known[] = {
		{ 0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8" },
		{ 3, "3d8c3d594928271f44aad7a04b177154806867bcf918e1549c0bc16f9da2b09b" },
		{ 127, "f2fe67ff342e21b8f45e8f2e0bcd1d9243245d50ee6c78042e9c491388791c72" },
		{ 128, "c3582f71ebb2be66fa5dd750f80baae97554f3b015663c8be377cfcb2488c1d1" },
		{ 129, "f7f3c46ba2564ff4c4c162da1f5b605f9f1c4aa6a20652a9f9a337c1a2f5b9c9" },
		{ 256, "582f782226018ec33076bd8d1c42413530ac7e1126260ffc0f306ba3befc3f24" },
		{ 1000, "b372d0608f720c8c3dd41e9c8eecb10143b41abe520b616607e754bf79c08331" },
	};
	unsigned char data[1000], hash[BLAKE2B_SIZE];
	char text[RESULT_HASH_LEN + 1];
	struct blake2b b;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i % 251);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		for (size_t piece = 1; piece <= sizeof(data); piece += piece < 130 ? 1 : 97) {
			blake2b_init(&b);
			for (size_t at = 0; at < known[i].len; at += piece)
				blake2b_update(&b, data + at, MIN(piece, known[i].len - at));
			blake2b_final(&b, hash);
			put_hex(hash, text);
			assert_string_equal(text, known[i].hash);
		}
}

static void a_path_names_a_result(void **state _unused_)
{
	unsigned char hash[BLAKE2B_SIZE];
	struct result_name name;
	struct blake2b b;

	assert_true(result_name_parse("a b/../x/fleet=doors/order=17/board=door-1/" HASH ".json",
				      &name));
	assert_string_equal(name.fleet, "doors");
	assert_string_equal(name.board, "door-1");
	assert_int_equal(name.order, 17);
	assert_string_equal(name.file, HASH ".json");
	assert_int_equal(name.kind, RESULT_REPORTS);
	blake2b_init(&b);
	blake2b_update(&b, "abc", 3);
	blake2b_final(&b, hash);
	assert_true(result_name_fits(&name, hash));
	hash[31] ^= 1;
	assert_false(result_name_fits(&name, hash));
	assert_true(result_name_parse("fleet=f/order=18446744073709551615/board=b/" HASH ".traced",
				      &name));
	assert_int_equal(name.kind, RESULT_CAPTURE);
}

static void other_paths_name_none(void **state _unused_)
{
	static const char *const paths[] = {
		"",
		"/",
		HASH ".json",
		"fleet=f/order=1/board=b/",
		"fleet=f/order=1/board=b/" HASH ".html",
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_are_those_of_others),
		cmocka_unit_test(a_path_names_a_result),
		cmocka_unit_test(other_paths_name_none),
		cmocka_unit_test(what_is_put_is_parsed),
		cmocka_unit_test(a_value_is_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
