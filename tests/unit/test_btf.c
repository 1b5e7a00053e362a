/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/names/btf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char strings[] = "\0ONE\0MINUS\0BIG\0HUGE\0page\0unused\0call\0a\0b";
enum { ONE = 1, MINUS = 5, BIG = 11, HUGE_AT = 15, PAGE = 20, CALL = 32, A = 37, B = 39 };

static void put32(struct buf *b, uint32_t v)
{
	buf_append(b, &v, 4);
}

static void put_type(struct buf *b, uint32_t name, unsigned kind, unsigned vlen, bool flag,
		     uint32_t size)
{
	put32(b, name);
	put32(b, kind << 24 | vlen | (uint32_t)flag << 31);
	put32(b, size);
}

static void make_types(struct buf *b)
{
	put_type(b, 0, 1, 0, false, 4); /* int */
	put32(b, 32);
	put_type(b, 0, 6, 2, true, 4); /* a signed enum */
	put32(b, ONE);
	put32(b, 1);
	put32(b, MINUS);
	put32(b, (uint32_t)-7);
	put_type(b, PAGE, 4, 1, false, 64); /* struct page with one member */
	put32(b, 0);
	put32(b, 1);
	put32(b, 0);
	put_type(b, 0, 6, 2, false, 4); /* an unsigned enum; ONE again */
	put32(b, BIG);
	put32(b, 0x80000000);
	put32(b, ONE);
	put32(b, 99);
	put_type(b, 0, 19, 1, false, 8); /* enum64 */
	put32(b, HUGE_AT);
	put32(b, 2);
	put32(b, 1);
	/* The first one is type 1; call's arguments are types 2, 3, 5, 7, 8, 9 and none. */
	put_type(b, 0, 8, 0, false, 10); /* 6: a name of 10 */
	put_type(b, 0, 2, 0, false, 1);	 /* 7: a pointer */
	put_type(b, 0, 10, 0, false, 6); /* 8: const 6 */
	put_type(b, 0, 1, 0, false, 8);	 /* 9: an unsigned integer */
	put32(b, 64);
	put_type(b, 0, 1, 0, false, 4); /* 10: a signed one */
	put32(b, 1 << 24 | 32);
	put_type(b, 0, 13, 7, false, 1); /* 11: a prototype */
	for (unsigned i = 0; i < 7; i++) {
		static const uint32_t of[] = { 2, 3, 5, 7, 8, 9, 0 };

		put32(b, i == 6 ? 0 : i % 2 ? B : A);
		put32(b, of[i]);
	}
	put_type(b, CALL, 12, 1, false, 11); /* 12: a function */
	put_type(b, CALL, 12, 1, false, 5);  /* 13: its type is no prototype */
	put_type(b, 0, 2, 0, false, 11);     /* 14: a pointer to a function */
	put_type(b, 0, 10, 0, false, 7);     /* 15: const of a pointer */
	put_type(b, 0, 2, 0, false, 15);     /* 16: a pointer to that */
	put_type(b, PAGE, 8, 0, false, 3);   /* 17: a typedef */
	put_type(b, 0, 10, 0, false, 17);    /* 18: const 17 */
	put_type(b, 0, 2, 0, false, 18);     /* 19: a pointer to that */
	put_type(b, 0, 2, 0, false, 0);	     /* 20: a pointer to void */
	put_type(b, 0, 13, 5, false, 0);     /* 21: a prototype */
	for (unsigned i = 0; i < 5; i++) {
		static const uint32_t of[] = { 14, 16, 19, 20, 3 };

		put32(b, i % 2 ? B : A);
		put32(b, of[i]);
	}
	put_type(b, MINUS, 12, 1, false, 21);	/* 22: a function */
	put_type(b, 0, 13, 0, false, 19);	/* 23: a prototype without arguments */
	put_type(b, HUGE_AT, 12, 1, false, 23); /* 24: a function */
}

static void make_btf(struct buf *out)
{
	_cleanup_buf_ struct buf types = BUF_INIT;

	make_types(&types);
	put32(out, 0x0001eb9f);
	put32(out, 24);
	put32(out, 0);
	put32(out, (uint32_t)types.len);
	put32(out, (uint32_t)types.len);
	put32(out, sizeof(strings));
	buf_append(out, types.data, types.len);
	buf_append(out, strings, sizeof(strings));
}

static const char *const names[] = { "ABSENT", "BIG", "HUGE", "MINUS", "ONE", "page" };

static void test_resolve(void **state)
{
	_cleanup_buf_ struct buf btf = BUF_INIT, out = BUF_INIT;

	(void)state;
	make_btf(&btf);
	assert_int_equal(btf_resolve_enums(btf.data, btf.len, names, ARRAY_SIZE(names), &out), 0);
	assert_string_equal(buf_string(&out), "ONE 1\nMINUS -7\nstruct:page 64\nBIG 2147483648\n"
					      "HUGE 4294967298\n");
}

static void test_arguments(void **state)
{
	_cleanup_buf_ struct buf btf = BUF_INIT, out = BUF_INIT;

	(void)state;
	make_btf(&btf);
	assert_int_equal(btf_describe_arguments(btf.data, btf.len, &out), 0);
	assert_string_equal(buf_string(&out), "enum 2 ONE=1 MINUS=-7\n"
					      "call a:e2 b:s64/STRUCT a:s8/ENUM64 b:p a:i b:u :?\n"
					      "MINUS a:p b:p a:p b:p a:s64/STRUCT\n"
					      "HUGE\n");
}

static void assert_prototype(const struct btf_functions *f, const char *name, bool bare,
			     const char *wanted)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	assert_int_equal(btf_functions_put(f, name, "f", bare, &out), wanted != NULL);
	assert_string_equal(buf_string(&out) ?: "", wanted ?: "");
}

static void test_prototypes(void **state _unused_)
{
	_cleanup_buf_ struct buf btf = BUF_INIT;
	_cleanup_(btf_functions_freep) struct btf_functions *f = NULL;

	make_btf(&btf);
	assert_int_equal(btf_functions_new(&f, btf.data, btf.len, NULL), 0);
	assert_int_equal(btf_functions_count(f), 3);
	assert_string_equal(btf_functions_name(f, 0), "HUGE");
	assert_string_equal(btf_functions_name(f, 1), "MINUS");
	assert_string_equal(btf_functions_name(f, 2), "call");
	assert_prototype(f, "HUGE", false, "const page *f(void)");
	assert_prototype(f, "MINUS", false,
			 "void f(function *a, ? **b, const page *a, void *b, struct page a)");
	assert_prototype(f, "MINUS", true, "f(? **b, const page *a, void *b, struct page a)");
	assert_prototype(f, "HUGE", true, "f(void)");
	assert_prototype(f, "call", false,
			 "? f(enum {...} a, struct page b, enum {...} a, ? *b, const ? a, ? b, "
			 "...)");
	assert_prototype(f, "absent", false, NULL);
}

/* The ids and the strings of a module continue the kernel's. */
static void make_module(struct buf *out)
{
	static const char own[] = "\0module_call\0module_type";
	const uint32_t name = sizeof(strings) + 1, type_name = name + 12, first = 25;
	_cleanup_buf_ struct buf types = BUF_INIT;

	put_type(&types, type_name, 8, 0, false, 3); /* 25: a typedef of the kernel's struct page */
	put_type(&types, 0, 13, 2, false, first);    /* 26: a prototype */
	put32(&types, A);
	put32(&types, 19);
	put32(&types, B);
	put32(&types, first);
	put_type(&types, name, 12, 1, false, 26); /* 27: a function */
	put32(out, 0x0001eb9f);
	put32(out, 24);
	put32(out, 0);
	put32(out, (uint32_t)types.len);
	put32(out, (uint32_t)types.len);
	put32(out, sizeof(own));
	buf_append(out, types.data, types.len);
	buf_append(out, own, sizeof(own));
}

static void test_modules(void **state _unused_)
{
	_cleanup_buf_ struct buf btf = BUF_INIT, module = BUF_INIT;
	_cleanup_(btf_functions_freep) struct btf_functions *base = NULL, *f = NULL;

	make_btf(&btf);
	make_module(&module);
	assert_int_equal(btf_functions_new(&base, btf.data, btf.len, NULL), 0);
	assert_int_equal(btf_functions_new(&f, module.data, module.len, base), 0);
	assert_int_equal(btf_functions_count(f), 1);
	assert_string_equal(btf_functions_name(f, 0), "module_call");
	assert_prototype(f, "module_call", false, "module_type f(const page *a, module_type b)");
	assert_prototype(f, "HUGE", false, NULL);
}

static void put_all_prototypes(const void *btf, size_t size, const struct btf_functions *base,
			       struct buf *out)
{
	_cleanup_(btf_functions_freep) struct btf_functions *f = NULL;

	if (btf_functions_new(&f, btf, size, base) < 0)
		return;
	for (size_t i = 0; i < btf_functions_count(f); i++)
		btf_functions_put(f, btf_functions_name(f, i), "f", i % 2, out);
}

/*
 * Every truncation and every changed byte: any answer will do, but nothing is read beyond the end.
 */
static void test_damage(void **state)
{
	_cleanup_buf_ struct buf btf = BUF_INIT;

	(void)state;
	make_btf(&btf);
	for (size_t i = 0; i < btf.len; i++) {
		_cleanup_free_ char *copy = malloc(i + 1);
		_cleanup_buf_ struct buf out = BUF_INIT;

		memcpy(copy, btf.data, i);
		assert_int_equal(btf_resolve_enums(copy, i, names, ARRAY_SIZE(names), &out),
				 -EBADMSG);
	}
	for (size_t i = 0; i < btf.len * 8; i++) {
		_cleanup_free_ char *copy = malloc(btf.len);
		_cleanup_buf_ struct buf out = BUF_INIT;

		memcpy(copy, btf.data, btf.len);
		copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
		btf_resolve_enums(copy, btf.len, names, ARRAY_SIZE(names), &out);
		btf_describe_arguments(copy, btf.len, &out);
		put_all_prototypes(copy, btf.len, NULL, &out);
	}
}

static void test_damaged_modules(void **state _unused_)
{
	_cleanup_buf_ struct buf btf = BUF_INIT, module = BUF_INIT;
	_cleanup_(btf_functions_freep) struct btf_functions *base = NULL;

	make_btf(&btf);
	make_module(&module);
	assert_int_equal(btf_functions_new(&base, btf.data, btf.len, NULL), 0);
	for (size_t i = 0; i < module.len * 8; i++) {
		_cleanup_free_ char *copy = malloc(module.len);
		_cleanup_buf_ struct buf out = BUF_INIT;

		memcpy(copy, module.data, module.len);
		copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
		put_all_prototypes(copy, module.len, base, &out);
	}
}

static void test_hz(void **state)
{
	static const char *const with[] = { "A", "HZ" };
	_cleanup_buf_ struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(constants_resolve_hz(names, ARRAY_SIZE(names), &out), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(constants_resolve_hz(with, 2, &out), 0);
	assert_int_equal(strncmp(buf_string(&out), "HZ ", 3), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resolve),	   cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_prototypes), cmocka_unit_test(test_damage),
		cmocka_unit_test(test_modules),	   cmocka_unit_test(test_damaged_modules),
		cmocka_unit_test(test_hz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
