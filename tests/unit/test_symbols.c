/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random_series.h"

/* Without CONFIG_KALLSYMS_ALL: text, and a few global data symbols after it. */
static const char text[] = "ffffffff81000000 T first_alias\n"
			   "ffffffff81000000 T _stext\n"
			   "ffffffff81000000 T _text\n"
			   "ffffffff81000040 t local.cold\n"
			   "ffffffff81000100 T last\n"
			   "ffffffff81200000 T _etext\n"
			   "ffffffff82000000 D jiffies\n"
			   "ffffffffa0002000 t second\t[mod]\n"
			   "ffffffffa0001000 t first\t[mod]\n"
			   "ffffffffa0003000 t other\t[zmod]\n"
			   "ffffffffc0001000 t ftrace_trampoline\t[__builtin__ftrace]\n"
			   "ffffffffc0002000 t bpf_prog_1\t[bpf]\n";

static struct symbols *make(const char *s)
{
	struct symbols *symbols;

	assert_int_equal(symbols_new(&symbols, s, strlen(s)), 0);
	return symbols;
}

static void check(const struct symbols *s, uint64_t address, const char *name, uint64_t offset,
		  uint64_t size, const char *module)
{
	struct symbol found;

	assert_true(symbols_find(s, address, &found));
	assert_string_equal(found.name, name);
	assert_int_equal(address - found.address, offset);
	assert_int_equal(found.size, size);
	if (module)
		assert_string_equal(found.module, module);
	else
		assert_null(found.module);
}

static void test_lookup(void **state)
{
	_cleanup_(symbols_freep) struct symbols *s = make(text);
	struct symbol found;

	(void)state;
	check(s, 0xffffffff81000000, "first_alias", 0, 0x40, NULL);
	check(s, 0xffffffff8100003f, "first_alias", 0x3f, 0x40, NULL);
	check(s, 0xffffffff81000040, "local.cold", 0, 0xc0, NULL);
	check(s, 0xffffffff811fffff, "last", 0x1ffeff, 0x1fff00, NULL);
	assert_false(symbols_find(s, 0xffffffff81200000, &found));
	assert_false(symbols_find(s, 0xffffffff82000000, &found));
	assert_false(symbols_find(s, 0x400000, &found));
	/* The kernel does not search the trampolines that it lists. */
	assert_false(symbols_find(s, 0xffffffffc0001083, &found));
	check(s, 0xffffffffc0002010, "bpf_prog_1", 0x10, 0x1000, "bpf");
	assert_false(symbols_find(NULL, 0xffffffff81000000, &found));
}

static void test_modules(void **state)
{
	_cleanup_(symbols_freep) struct symbols *s = make(text);
	struct symbol found;

	(void)state;
	check(s, 0xffffffffa0001010, "first", 0x10, 0x1000, "mod");
	check(s, 0xffffffffa0002010, "second", 0x10, 0x1000, "mod");
	check(s, 0xffffffffa0003001, "other", 1, 0x1000, "zmod");
	assert_false(symbols_find(s, 0xffffffffa0004000, &found));
}

static void test_all_data(void **state)
{
	_cleanup_(symbols_freep) struct symbols *s = make("ffffffff81000000 T _stext\n"
							  "ffffffff81200000 T _etext\n"
							  "ffffffff82000000 d local_data\n"
							  "ffffffff82000010 B _end\n");
	struct symbol found;

	(void)state;
	check(s, 0xffffffff82000004, "local_data", 4, 0x10, NULL);
	assert_false(symbols_find(s, 0xffffffff82000010, &found));
}

static void test_nothing(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n",
		"0000000000000000 T _stext\n0000000000000000 T x\n",
		"garbage",
		"ffffffff81000000 T",
		"ffffffff81000000 T \n",
		"zzzz T x\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_(symbols_freep) struct symbols *s = make(texts[i]);
		struct symbol found;

		assert_false(symbols_find(s, 0xffffffff81000000, &found));
		assert_false(symbols_find(s, 0, &found));
	}
}

static void test_added(void **state)
{
	static const char later[] = "ffffffffa0001000 t reused\t[new]\n"
				    "ffffffffa0005000 t late\t[new]\n";
	static const char latest[] = "ffffffffa0007000 t latest\t[newest]\n";
	_cleanup_(symbols_freep) struct symbols *s = make(text);
	struct symbol found;

	(void)state;
	assert_false(symbols_find(s, 0xffffffffa0005010, &found));
	assert_int_equal(symbols_add(s, later, strlen(later)), 0);
	assert_int_equal(symbols_add(s, latest, strlen(latest)), 0);
	check(s, 0xffffffffa0005010, "late", 0x10, 0x1000, "new");
	check(s, 0xffffffffa0007000, "latest", 0, 0x1000, "newest");
	/* The first name stays. */
	check(s, 0xffffffffa0001004, "first", 4, 0x1000, "mod");
	check(s, 0xffffffff81000040, "local.cold", 0, 0xc0, NULL);
	assert_false(symbols_find(s, 0xffffffff82000000, &found));
}

/*
 * Every character at every position of an address: one that is no digit ends it and makes the line
 * invalid.
 */
static void test_addresses(void **state)
{
	(void)state;
	for (int c = 1; c < 256; c++) {
		for (size_t at = 0; at < 16; at++) {
			char line[] = "0123456789abcdef T x\n";
			/* Text after a newline is another line. */
			bool is_digit = c == '\n' ? at < 15 : !!strchr("0123456789abcdefABCDEF", c);
			struct symbol found;
			struct symbols *s;
			uint64_t address;

			line[at] = (char)c;
			address = strtoull(c == '\n' ? line + at + 1 : line, NULL, 16);
			s = make(line);
			assert_int_equal(symbols_find(s, address, &found) &&
						 found.address == address &&
						 !strcmp(found.name, "x"),
					 is_digit);
			symbols_free(s);
		}
	}
}

#define LINES 5000

/* Names stay in the text that they were read from: none overwrites another. */
static void test_text_of_any_lines(void **state)
{
	_cleanup_(symbols_freep) struct symbols *s = NULL;
	_cleanup_buf_ struct buf lines = BUF_INIT;
	uint64_t seed = RANDOM_FIRST;
	char names[LINES][80], modules[LINES][80];

	(void)state;
	for (unsigned i = 0; i < LINES; i++) {
		bool has_module = i >= LINES / 2 && random_next(&seed) % 4;
		int name_len = (int)(random_next(&seed) % 3 ? 1 + random_next(&seed) % 9
							    : 20 + random_next(&seed) % 40);

		snprintf(names[i], sizeof(names[i]), "%0*u", name_len, i);
		snprintf(modules[i], sizeof(modules[i]), "%.*s%u", (int)(i / 50 % 70),
			 "a_module_of_a_name_that_is_longer_and_longer_and_longer_and_longer_than",
			 i / 50);
		buf_printf(&lines, i % 7 ? "%x t %s" : "%016x t %s", i + 1, names[i]);
		if (has_module)
			buf_printf(&lines, "\t[%s]", modules[i]);
		else
			modules[i][0] = '\0';
		if (i + 1 < LINES)
			buf_puts(&lines, random_next(&seed) % 50 ? "\n" : "\n\nno line\n");
	}
	assert_int_equal(symbols_take(&s, &lines), 0);
	assert_null(lines.data);
	assert_int_equal(symbols_count(s), LINES);
	for (unsigned i = 0; i < LINES; i++) {
		struct symbol found;

		assert_true(symbols_find(s, i + 1, &found));
		assert_string_equal(found.name, names[i]);
		assert_string_equal(found.module ?: "", modules[i]);
	}
}

/* Lines in which nearly every byte counts. */
static void test_tight_lines(void **state)
{
	static const char tight[] = " t a\n t a\t[m]\n0 t b\t[m]\n1 t c\t[n]\n2 t d\0e\t[o]\n"
				    "3 t f\t[]\n4 t g\t[p";
	static const char alone[] = "5 t h";
	_cleanup_(symbols_freep) struct symbols *s = NULL;
	_cleanup_buf_ struct buf lines = BUF_INIT;

	(void)state;
	buf_append(&lines, tight, sizeof(tight) - 1);
	assert_int_equal(symbols_take(&s, &lines), 0);
	buf_puts(&lines, alone);
	assert_int_equal(symbols_take(&s, &lines), 0);
	check(s, 1, "c", 0, 4096 - 1, "n");
	check(s, 2, "d", 0, 4096 - 2, "o");
	check(s, 3, "f", 0, 1, NULL);
	check(s, 4, "g\t[p", 0, 4096 - 4, NULL);
	check(s, 0, "a", 0, 4096, NULL);
}

/* The first symbol of an address counts, and ends where the next address begins. */
static void test_equal_addresses(void **state)
{
	_cleanup_(symbols_freep) struct symbols *s =
		make("0 t first\n0 t second\n0 t third\n7 t a\n7 t b\n9 t c\n9 t d\n");

	(void)state;
	check(s, 0, "first", 0, 7, NULL);
	check(s, 6, "first", 6, 7, NULL);
	check(s, 7, "a", 0, 2, NULL);
	check(s, 8, "a", 1, 2, NULL);
	check(s, 9, "c", 0, 4096 - 9, NULL);
}

static void check_irqs(const char *lines, uint64_t start, uint64_t end)
{
	_cleanup_(symbols_freep) struct symbols *s = make(lines);
	uint64_t found_start, found_end;
	bool any = symbols_irq_entries(s, &found_start, &found_end);

	assert_int_equal(any, end != 0);
	if (any)
		assert_int_equal(found_start, start);
	if (any)
		assert_int_equal(found_end, end);
}

static void test_irq_entries(void **state)
{
	uint64_t start, end;

	(void)state;
	check_irqs("10 T __irqentry_text_start\n20 t x\n30 T __irqentry_text_end\n", 0x10, 0x30);
	check_irqs("10 T __irqentry_text_start\n20 t x\n", 0, 0);
	check_irqs("20 t x\n30 T __irqentry_text_end\n", 0, 0);
	check_irqs("30 T __irqentry_text_start\n30 T __irqentry_text_end\n", 0, 0);
	/* A module's symbol does not count. */
	check_irqs("10 T __irqentry_text_start\t[m]\n30 T __irqentry_text_end\t[m]\n", 0, 0);
	check_irqs("", 0, 0);
	assert_false(symbols_irq_entries(NULL, &start, &end));
}

static void test_too_many(void **state)
{
	_cleanup_buf_ struct buf lines = BUF_INIT;
	struct symbols *s, *none = NULL;

	(void)state;
	for (unsigned i = 0; i < SYMBOLS_MAX; i++)
		buf_puts(&lines, "1 t a\n");
	assert_int_equal(symbols_new(&s, lines.data, lines.len), 0);
	symbols_free(s);
	buf_puts(&lines, "1 t a\n");
	assert_int_equal(symbols_new(&none, lines.data, lines.len), -EFBIG);
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_added),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_all_data),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_text_of_any_lines),
		cmocka_unit_test(test_irq_entries),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_equal_addresses),
		cmocka_unit_test(test_tight_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
