/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs: the text of a format and a record's bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "make_table.h"

/* A record with one of everything, for the formats under test. */
#define FIELDS                                                                                     \
	FIELD("s8", "s8", 8, 1, 1)                                                                 \
	FIELD("u8", "u8", 9, 1, 0)                                                                 \
	FIELD("s16", "s16", 10, 2, 1)                                                              \
	FIELD("int", "s32", 12, 4, 1)                                                              \
	FIELD("u64", "u64", 16, 8, 0)                                                              \
	FIELD("s64", "s64", 24, 8, 1)                                                              \
	FIELD("u32", "u32", 32, 4, 0)                                                              \
	FIELD("bool", "flag", 36, 1, 0)                                                            \
	FIELD("__data_loc char[]", "str", 40, 4, 0)                                                \
	FIELD("__data_loc u32[]", "arr", 44, 4, 0)                                                 \
	FIELD("void *", "ptr", 48, 8, 0)                                                           \
	FIELD("char", "comm[16]", 56, 16, 0)                                                       \
	FIELD("u8", "mac[6]", 72, 6, 0)                                                            \
	FIELD("__rel_loc char[]", "rel", 80, 4, 0)                                                 \
	FIELD("u8", "ip6[16]", 88, 16, 0)                                                          \
	FIELD("__data_loc cpumask_t", "mask", 104, 4, 0)                                           \
	FIELD("u8", "sa[28]", 108, 28, 0) FIELD("const char *", "kstr", 136, 8, 0)

static const uint8_t record[184] = {
	[8] = 0xfe, /* s8 -2 */
	[9] = 0xfe, /* u8 254 */
	[10] = 0x00,
	0x80, /* s16 -32768 */
	[12] = 0xff,
	0xff,
	0xff,
	0xff, /* s32 -1 */
	[16] = 0xef,
	0xcd,
	0xab,
	0x89,
	0x67,
	0x45,
	0x23,
	0x01, /* u64 */
	[24] = 0xfb,
	0xff,
	0xff,
	0xff,
	0xff,
	0xff,
	0xff,
	0xff, /* s64 -5 */
	[32] = 0x05,
	0x00,
	0x00,
	0x80, /* u32 0x80000005 */
	[36] = 1,
	[40] = 144,
	0,
	6,
	0, /* str: "hello" */
	[44] = 152,
	0,
	8,
	0, /* arr: 2 words */
	[48] = 0x00,
	0x10,
	0x00,
	0x81,
	0xff,
	0xff,
	0xff,
	0xff, /* ptr */
	[56] = 'c',
	'o',
	'm',
	'm',
	[72] = 0x00,
	0x11,
	0x22,
	0xaa,
	0xbb,
	0xcc,
	[80] = 84,
	0,
	4,
	0, /* rel: at 84 + 84 = 168 */
	[88] = 0x20,
	0x01,
	0x0d,
	0xb8,
	[103] = 1,
	[104] = 160,
	0,
	8,
	0, /* mask */
	[108] = 2,
	0,
	0x1f,
	0x90,
	127,
	0,
	0,
	1, /* 127.0.0.1:8080 */
	[136] = 0x10,
	0x20,
	0x30,
	0x40,
	0x50,
	0xff,
	0xff,
	0xff,
	[144] = 'h',
	'e',
	'l',
	'l',
	'o',
	0,
	[152] = 1,
	0,
	0,
	0,
	0xef,
	0xbe,
	0xad,
	0xde,
	[160] = 0x05,
	0,
	0,
	0,
	1,
	0,
	0,
	0,
	[168] = 'r',
	'e',
	'l',
	0,
};

/* The print fmt's text behind "ev: ". */
static void check(const char *print_fmt, const char *expected)
{
	_cleanup_(event_table_freep) struct event_table *t =
		make_table("test", "ev", FIELDS, print_fmt, &native);
	_cleanup_buf_ struct buf out = BUF_INIT;
	const struct event *ev = event_table_find(t, 500);

	if (ev->why_fallback)
		fail_msg("%s: %s", print_fmt, ev->why_fallback);
	assert_int_equal(table_print(t, record, sizeof(record), &out), 0);
	assert_int_equal(strncmp(buf_string(&out), "ev: ", 4), 0);
	assert_string_equal(out.data + 4, expected);
}

static void test_numbers(void **state)
{
	(void)state;
	check("\"%d %d %u %x\", REC->s8, REC->s16, REC->s8, REC->s8",
	      "-2 -32768 4294967294 fffffffe");
	check("\"%u %x %lld\", REC->u8, REC->s32, REC->s64", "254 ffffffff -5");
	check("\"%llx %llu\", REC->u64, REC->u64", "123456789abcdef 81985529216486895");
	check("\"%hhu %hu %hd\", REC->s32, REC->s32, REC->u32", "255 65535 5");
	check("\"%5d|%-5d|%05d\", REC->s8, REC->s8, REC->s8", "   -2|-2   |-0002");
	check("\"%#lx %o %X\", REC->u64, REC->u8, REC->u8", "0x123456789abcdef 376 FE");
	check("\"%*d|%-*d|%c%c\", 4, REC->u8, -5, REC->u8, 'x', REC->flag ? 'F' : '.'",
	      " 254|254  |xF");
	check("\"%lu %zu %Lu 100%%\", 18446744073709551615UL, sizeof(u64), (unsigned long long)1",
	      "18446744073709551615 8 1 100%");
}

/* C's promotions and conversions, with the widths of the recorded machine. */
static void test_types(void **state)
{
	(void)state;
	check("\"%d\", REC->s32 > REC->u32", "1"); /* -1 as unsigned */
	check("\"%d\", REC->s8 < REC->u8", "1");
	check("\"%d\", REC->s64 < REC->u32", "1");
	check("\"%llx\", (unsigned long long)REC->s32", "ffffffffffffffff");
	check("\"%llx\", (unsigned long long)(u32)REC->s32", "ffffffff");
	check("\"%d\", REC->u32 >> 31", "1");
	check("\"%x\", REC->s32 >> 4", "ffffffff");
	check("\"%x\", (unsigned)REC->s32 >> 4", "fffffff");
	check("\"%x\", ((unsigned int) ((REC->u32) & ((1U << 20) - 1)))", "5");
	check("\"%d %d\", REC->s32 / 2, REC->u32 / 2", "0 1073741826");
	check("\"%d %d\", -7 / 2, -7 % 2", "-3 -1");
	check("\"%d\", (bool)REC->u64", "1");
	check("\"%d %d %d\", !REC->flag, !!REC->u8, ~REC->u8", "0 1 -255");
	check("\"%d\", REC->u8 && REC->flag || 0", "1");
	check("\"%d %u\", KNOWN, BIG", "7 4294967295");
	check("\"%lx\", (unsigned long)MINUS", "ffffffffffffffff");
	check("\"%d\", 1 + 2 * 3 - (4 << 1 >> 1) ^ 1 | 8", "10");
	check("\"%s\", REC->u8 == 254 ? REC->flag ? \"a\" : \"b\" : \"c\"", "a");
	check("\"%d\", ({ int x = (REC->s32); int y = (128); ((x) < (y) ? (x) : (y)); })", "-1");
	check("\"%d\", __builtin_expect(!!(REC->s64 >= (unsigned long)-4095), 0) ? 1 : 2", "1");
	check("\"%u\", jiffies_to_msecs(REC->u8)", "1016");
}

static void test_strings(void **state)
{
	(void)state;
	check("\"%s %s %s\", REC->comm, __get_str(str), __get_rel_str(rel)", "comm hello rel");
	check("\"%.*s|%.2s|%8s|%-8s|\", 3, __get_str(str), REC->comm, REC->comm, REC->comm",
	      "hel|co|    comm|comm    |");
	check("\"%s\" \" and \\\"%s\\\"\\t\", \"a\" \"b\", REC->kstr",
	      "ab and \"kernel \"text\"\"\t");
	check("\"%s\", REC->flag ? __get_str(str) : \"none\"", "hello");
	check("\"%s\", __get_str(str)[0] ? \"some\" : \"none\"", "some");
	check("\"%s %s\", (char *)((void *)0), REC->ptr", "(null) (0xffffffff81001000)");
	check("\"%5s|%-12s|\", __print_symbolic(REC->u8, { 254, \"x\" }), "
	      "__print_flags(5, \"|\", { 1, \"A\" }, { 4, \"B\" })",
	      "    x|A|B         |");
}

static void test_tables(void **state)
{
	(void)state;
	check("\"%s %s\", __print_symbolic(REC->u8, { 1, \"no\" }, { 254, \"yes\" }), "
	      "__print_symbolic(REC->s32, { -1, \"minus\" })",
	      "yes minus");
	check("\"%s\", __print_symbolic(REC->s32, { 1, \"one\" })", "0xffffffffffffffff");
	check("\"%s\", __print_symbolic(3, { })", "0x3");
	check("\"%s|%s|%s\", __print_flags(0, \"|\", { 1, \"A\" }), "
	      "__print_flags(7, \"|\", { 1, \"A\" }, { 2, \"B\" }), "
	      "__print_flags(8, \", \", { 1, \"A\" })",
	      "|A|B|0x4|0x8");
	check("\"%s\", __print_flags(5, ((void *)0), { 1, \"A\" }, { 4, \"B\" })", "AB");
	/* An entry without a name ends the table; an entry of several bits comes first. */
	check("\"%s\", __print_flags(7, \"+\", { 3, \"AB\" }, { 1, \"A\" }, { 0, ((void *)0) }, "
	      "{ 4, \"C\" })",
	      "AB+0x4");
	check("\"%s\", __print_symbolic(9, { UNHEARD, \"x\" }, { 1, \"y\" })", "0x9?");
	check("\"%d %s\", REC->u8 ? UNHEARD : 1, \"x\"", "<unknown> x");
	check("\"%d\", REC->flag ? 3 : UNHEARD", "3");
}

static void test_memory(void **state)
{
	(void)state;
	check("\"%s|%s\", __print_hex(REC->mac, 6), __print_hex_str(REC->mac, 6)",
	      "00 11 22 aa bb cc|001122aabbcc");
	check("\"%s\", __print_array(__get_dynamic_array(arr), __get_dynamic_array_len(arr) / "
	      "sizeof(u32), sizeof(u32))",
	      "{0x1,0xdeadbeef}");
	check("\"%s\", __print_array(REC->mac, 0, 1)", "{}");
	check("\"%pM %pm %pMR\", REC->mac, REC->mac, REC->mac",
	      "00:11:22:aa:bb:cc 001122aabbcc cc:bb:aa:22:11:00");
	check("\"%pI4 %pI6c %pI6\", REC->mac, REC->ip6, REC->ip6",
	      "0.17.34.170 2001:db8::1 2001:0db8:0000:0000:0000:0000:0000:0001");
	check("\"%pISpc %pIS\", REC->sa, REC->sa", "127.0.0.1:8080 127.0.0.1");
	check("\"%pISpc\", REC->ip6", "(einval)");
	check("\"%pU %pUl %pUB\", REC->ip6, REC->ip6, REC->ip6",
	      "20010db8-0000-0000-0000-000000000001 b80d0120-0000-0000-0000-000000000001 "
	      "20010DB8-0000-0000-0000-000000000001");
	check("\"%6phC|%*ph|%*pbl|%*pb\", REC->mac, 2, REC->mac, 64, __get_dynamic_array(mask), "
	      "40, "
	      "__get_dynamic_array(mask)",
	      "00:11:22:aa:bb:cc|00 11|0,2,32|01,00000005");
	check("\"%s\", __get_cpumask(mask)", "00000001,00000005");
	check("\"%d %d %x\", REC->mac[1], __get_dynamic_array_len(arr), "
	      "((u32 *)__get_dynamic_array(arr))[1]",
	      "17 8 deadbeef");
}

static void test_pointers(void **state)
{
	struct event_table_env hashed = { .word_size = 8, .pointers = POINTER_HASHED };
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct event_table *t;

	(void)state;
	check("\"%p %p %p\", REC->ptr, (void *)0, (void *)REC->u64",
	      "ffffffff81001000 0000000000000000 0123456789abcdef");
	check("\"%pS %ps %pS\", REC->ptr, REC->ptr, (void *)REC->u64",
	      "func+0x0/0x1000 func 0x123456789abcdef");
	check("\"%pS|%20ps|\", (void *)0, (void *)(REC->ptr + 16)", "0x0|                func|");

	t = make_table("test", "ev", FIELDS, "\"%p %p %pS\", REC->ptr, (void *)0, REC->kstr",
		       &hashed);
	assert_int_equal(table_print(t, record, sizeof(record), &out), 0);
	buf_string(&out);
	assert_null(strstr(out.data, "81001000"));
	assert_null(strstr(out.data, "40302010"));
	assert_non_null(strstr(out.data, " 0000000000000000 "));
	event_table_free(t);
}

/* The kernel prints some addresses as numbers. */
static void test_addresses_as_numbers(void **state)
{
#define NUMBERS "\"%lx %#llx %020lx %lx %d\", REC->ptr, REC->ptr, REC->ptr, REC->u64, 5"
	struct event_table_env hashed = { .word_size = 8, .pointers = POINTER_HASHED };
	static const char raw[] = "ffffffff81001000 0xffffffff81001000 0000ffffffff81001000 "
				  "123456789abcdef 5";
	_cleanup_buf_ struct buf out = BUF_INIT, call = BUF_INIT;
	struct event_table *t;

	(void)state;
	check(NUMBERS, raw);
	t = make_table("test", "ev", FIELDS, NUMBERS, &hashed);
	assert_int_equal(table_print(t, record, sizeof(record), &out), 0);
	assert_null(strstr(buf_string(&out), "81001000"));
	assert_non_null(strstr(buf_string(&out), " 123456789abcdef 5"));
	event_table_free(t);
	/* Arguments of system calls are values of programs. */
	t = make_table("raw_syscalls", "ev", FIELDS, NUMBERS, &hashed);
	assert_int_equal(table_print(t, record, sizeof(record), &call), 0);
	assert_non_null(strstr(buf_string(&call), raw));
	event_table_free(t);
#undef NUMBERS
}

/* A 32-bit machine of the other byte order. */
static void test_other_machine(void **state)
{
	const struct event_table_env env = { .word_size = 4,
					     .big_endian = true,
					     .pointers = POINTER_RAW };
	static const uint8_t data[] = { [8] = 0x12, 0x34, 0x56, 0x78, 0xff, 0xff, 0xff, 0xfe,
					0x00,	    0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02 };
	_cleanup_(event_table_freep) struct event_table *t =
		make_table("test", "ev",
			   FIELD("void *", "ptr", 8, 4, 0) FIELD("long", "l", 12, 4, 1)
				   FIELD("u64", "u64", 16, 8, 0),
			   "\"%p %ld %lx %llu %s %d\", REC->ptr, REC->l, REC->l, REC->u64, "
			   "__print_symbolic(REC->l, { -2, \"minus two\" }), sizeof(long)",
			   &env);
	_cleanup_buf_ struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(table_print(t, data, sizeof(data), &out), 0);
	assert_string_equal(buf_string(&out), "ev: 12345678 -2 fffffffe 4294967298 minus two 4");
}

static void test_truncated(void **state)
{
	_cleanup_(event_table_freep) struct event_table *t =
		make_table("test", "ev", FIELDS,
			   "\"a=%d b=%llu c=%s\", REC->s32, REC->u64, __get_str(str)", &native);
	static const struct {
		uint32_t len;
		const char *text;
	} cases[] = {
		{ 0, "ev: a=[truncated]" },
		{ 15, "ev: a=[truncated]" },
		{ 16, "ev: a=-1 b=[truncated]" },
		{ 24, "ev: a=-1 b=81985529216486895 c=[truncated]" },
		{ 100, "ev: a=-1 b=81985529216486895 c=[truncated]" },
		{ 146, "ev: a=-1 b=81985529216486895 c=he" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct buf out = BUF_INIT;

		table_print(t, record, cases[i].len, &out);
		assert_string_equal(buf_string(&out), cases[i].text);
	}
}

/* The program computes the value before it writes anything. */
static void test_truncated_at_once(void **state)
{
	_cleanup_(event_table_freep) struct event_table *t = make_table(
		"test", "ev", FIELD("u16", "u16", 8, 2, 0), "\"%d\", REC->u16 + 1", &native);
	_cleanup_buf_ struct buf out = BUF_INIT;

	(void)state;
	buf_puts(&out, "before ");
	table_print(t, record, 9, &out);
	assert_string_equal(buf_string(&out), "before ev: [truncated]");
}

/* Broken print formats: none may be accepted, none may crash. */
static void test_refused(void **state)
{
	static const char *const formats[] = {
		"",
		"\"%d\"",
		"\"%d\", REC->nothing",
		"\"%d\", (",
		"\"%s\", __print_symbolic(1",
		"\"%d\", ((struct foo *)REC->ptr)->x",
		"\"%d\", call(1)",
		"\"unended",
		"\"%d\", 1 2",
		"\"%d\", REC->comm",
		"\"%y\", 1",
		"\"%s\", __print_flags(1, \"|\", { REC->u8, \"a\" })",
		"\"%s\", __print_flags(5, delimiter, { 1, \"A\" }, { 4, \"B\" })",
		"\"%s\", __print_flags(5, 1, { 1, \"A\" }, { 4, \"B\" })",
		"\"%d\", ({ int x; })",
		"\"%d\", \"text\"",
		"REC->u8",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		_cleanup_(event_table_freep) struct event_table *t =
			make_table("test", "ev", FIELDS, formats[i], &native);
		const struct event *ev = event_table_find(t, 500);

		if (i == 9) /* an array as a number: marked, not refused */
			assert_non_null(ev->program);
		else if (ev->program || !ev->why_fallback)
			fail_msg("taken: %s", formats[i]);
	}
}

static void test_fallback(void **state)
{
	_cleanup_(event_table_freep) struct event_table *t =
		make_table("test", "ev", FIELDS, "\"%d %d\", REC->u8, call(1)", &native);
	struct record rec = { .data = record, .len = sizeof(record) },
		      small = { .data = record, .len = 20 };
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct printer *p;

	(void)state;
	assert_int_equal(printer_new(&p, t), 0);
	assert_int_equal(event_print(p, event_table_find(t, 500), &rec, &out), 0);
	assert_int_equal(strncmp(buf_string(&out), "ev: ", 4), 0);
	assert_int_equal(event_print(p, event_table_find(t, 500), &small, &out), -EBADMSG);
	assert_int_equal(printer_fallbacks(p), 2);
	printer_free(p);
}

static unsigned symbol_reads;

static struct symbols *count_reads(void *userdata)
{
	symbol_reads++;
	return table_symbols(userdata);
}

/* Checks whether the name is found, and how often all symbols were read to find it. */
static void check_excerpt(struct event_table *t, uint64_t address, const char *name, unsigned reads)
{
	struct symbol found;

	assert_int_equal(event_table_find_symbol(t, address, &found), name != NULL);
	if (name)
		assert_string_equal(found.name, name);
	assert_int_equal(symbol_reads, reads);
}

static void names_in_the_excerpt_need_no_symbols(void **state _unused_)
{
	static const char excerpt[] = "ffffffff81001100 t writer\nffffffff81001180 t next\n";
	_cleanup_(event_table_freep) struct event_table *t = NULL;

	symbol_reads = 0;
	assert_int_equal(event_table_new(&t, &native), 0);
	event_table_set_symbols(t, count_reads, NULL);
	assert_int_equal(event_table_add_excerpt(t, excerpt, strlen(excerpt)), 0);
	assert_int_equal(event_table_add_excerpt(t, "0 t other\n9 t end\n", 18), 0);
	check_excerpt(t, 0xffffffff81001100, "writer", 0);
	check_excerpt(t, 0xffffffff8100117f, "writer", 0);
	assert_int_equal(event_table_symbol_count(t), 0);
	/* The last line and the second excerpt give no name. */
	check_excerpt(t, 0xffffffff81001180, "func", 1);
	check_excerpt(t, 0xffffffff810010ff, "func", 1);
	check_excerpt(t, 5, NULL, 1);
}

/* A text that is no excerpt gives nothing: all symbols are read. */
static void odd_excerpts_name_nothing(void **state _unused_)
{
	static const char *const texts[] = { "", "\n", "5 t alone\n", "x", "5 t a\n5 t b\n" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_(event_table_freep) struct event_table *t = NULL;

		symbol_reads = 0;
		assert_int_equal(event_table_new(&t, &native), 0);
		event_table_set_symbols(t, count_reads, NULL);
		assert_int_equal(event_table_add_excerpt(t, texts[i], strlen(texts[i])), 0);
		check_excerpt(t, 5, NULL, 1);
		check_excerpt(t, 0xffffffff81001100, "func", 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_addresses_as_numbers),
		cmocka_unit_test(test_other_machine),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_truncated_at_once),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_fallback),
		cmocka_unit_test(names_in_the_excerpt_need_no_symbols),
		cmocka_unit_test(odd_excerpts_name_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
