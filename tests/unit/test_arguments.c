/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arguments of functions. test_recorded.c compares them with the kernel's own text. */
#include "print/arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define FUNCTION UINT64_C(0xffffffff81000000)
#define POINTER UINT64_C(0xffff888000001000)

static struct symbols *make_symbols(void *userdata _unused_)
{
	static const char text[] = "ffffffff81000000 T _stext\nffffffff81000000 T call\n"
				   "ffffffff81000100 T _etext\n";
	struct symbols *symbols = NULL;

	/* If an address had two names, the first one would count. */
	assert_int_equal(symbols_new(&symbols, strchr(text, '\n') + 1, strlen(text) - 26), 0);
	return symbols;
}

struct fixture {
	struct event_table_env env;
	struct buf text;
};

/* Prints these words by these lines. */
static void print(struct fixture *f, const char *lines, const uint64_t *words, size_t count)
{
	_cleanup_(event_table_freep) struct event_table *t = NULL;
	_cleanup_(printer_freep) struct printer *p = NULL;

	buf_clear(&f->text);
	f->env.word_size = 8;
	f->env.big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	assert_int_equal(event_table_new(&t, &f->env), 0);
	event_table_set_symbols(t, make_symbols, NULL);
	assert_int_equal(event_table_add_arguments(t, lines, strlen(lines)), 0);
	assert_int_equal(event_table_seal(t, NULL), 0);
	assert_int_equal(printer_new(&p, t), 0);
	print_arguments(p, FUNCTION, (const uint8_t *)words, count, &f->text);
	assert_non_null(buf_string(&f->text));
}

static void each_type_has_its_form(void **state _unused_)
{
	static const uint64_t words[] = { POINTER, (uint64_t)-3, 0x81, 1, 7, 5 };
	struct fixture f = { .env.pointers = POINTER_RAW };

	print(&f, "enum 2 ONE=1 MINUS=-7\ncall p:p i:i u:u e:e2 other:e2 none:?\n", words, 6);
	assert_string_equal(f.text.data, "(p=0xffff888000001000, i=-3, u=0x81, e=1 [ONE], other=7, "
					 "none=?0x5)");
	/* Linux before 6.17 printed unsigned values like signed ones. */
	f.env.kernel = 6U << 16 | 15;
	print(&f, "call p:p i:i u:u\n", words, 6);
	assert_string_equal(f.text.data, "(p=0xffff888000001000, i=-3, u=129)");
	buf_deinit(&f.text);
}

static void structures_take_several_words(void **state _unused_)
{
	static const uint64_t words[] = { 1, 2, 3, 4 };
	struct fixture f = { 0 };

	print(&f, "call a:s16/STRUCT b:p c:s8/UNION\n", words, 4);
	assert_string_equal(f.text.data, "(a=(STRUCT)[0x1:0x2], b=0x3, c=(UNION)[0x4])");
	print(&f, "call a:p b:p c:p d:s16/STRUCT e:p\n", words, 4);
	assert_string_equal(f.text.data, "(a=0x1, b=0x2, c=0x3, d=(STRUCT)[0x4:...])");
	print(&f, "call a:p b:p c:p d:p e:p f:p\n", words, 4);
	assert_string_equal(f.text.data, "(a=0x1, b=0x2, c=0x3, d=0x4, ...)");
	buf_deinit(&f.text);
}

static void unknown_functions_have_no_arguments(void **state _unused_)
{
	static const uint64_t words[] = { 1 };
	struct fixture f = { 0 };

	print(&f, "calls a:p\nenum 1 call=2\n\ncal b:p", words, 1);
	assert_string_equal(f.text.data, "()");
	print(&f, "call\n", words, 1);
	assert_string_equal(f.text.data, "()");
	buf_deinit(&f.text);
}

/* A hostile stream: any answer will do, but parsing must end. */
static void damaged_lines_end_in_order(void **state _unused_)
{
	static const char *const lines[] = { "call a",
					     "call a:",
					     "call :s",
					     "call :s99999999999/",
					     "call  a:p",
					     "call a:e",
					     "call a:e2\nenum 2 =\n",
					     "call a:e2\nenum 2 A B=\n",
					     "enum\nenum \ncall x:s16" };
	static const uint64_t words[] = { 1, 2 };
	struct fixture f = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		print(&f, lines[i], words, 2);
		assert_int_equal(f.text.data[f.text.len - 1], ')');
	}
	buf_deinit(&f.text);
}

/* Any type prints a hash, unless addresses are shown. */
static void the_kernels_addresses_are_hidden(void **state _unused_)
{
	static const uint64_t words[] = { POINTER, POINTER };
	/* With five levels of page tables this is -67272519360309504. */
	static const uint64_t deep[] = { UINT64_C(0xff11000004621700), (uint64_t)-5 };
	struct fixture f = { .env.pointers = POINTER_HASHED };

	print(&f, "call a:p b:u\n", words, 2);
	assert_null(strstr(f.text.data, "888000001000"));
	assert_non_null(strstr(f.text.data, "b=0x"));
	print(&f, "call a:i b:i\n", deep, 2);
	assert_null(strstr(f.text.data, "-67272519"));
	assert_non_null(strstr(f.text.data, "b=-5"));
	buf_deinit(&f.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_has_its_form),
		cmocka_unit_test(structures_take_several_words),
		cmocka_unit_test(unknown_functions_have_no_arguments),
		cmocka_unit_test(damaged_lines_end_in_order),
		cmocka_unit_test(the_kernels_addresses_are_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
