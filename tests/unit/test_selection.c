/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How people name a part of a recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/event_glob.h"
#include "base/io.h"
#include "export/moment.h"
#include "filter/event_names.h"
#include "filter/expression.h"

static void moments(void **state _unused_)
{
	static const struct {
		const char *text;
		enum moment_kind kind;
		uint64_t ns;
	} good[] = {
		/* The text rounds to microseconds. */
		{ "12", MOMENT_AT, 12 * NSEC_PER_SEC - 500 },
		{ "12.5", MOMENT_AT, 12500000000 - 500 },
		{ "12.345678", MOMENT_AT, 12345678000 - 500 },
		{ "12.345678901", MOMENT_AT, 12345678901 },
		{ "12.3456780", MOMENT_AT, 12345678000 },
		{ "0", MOMENT_AT, 0 },
		{ "99999999999999", MOMENT_AT, UINT64_MAX },
		{ "+1.5s", MOMENT_AFTER_BEGIN, 1500000000 },
		{ "-500ms", MOMENT_BEFORE_END, 500000000 },
	};
	static const char *const bad[] = {
		"", "+", "-", "+x", "1.2.3", "1s", "12:3", "mark:", "99999999999999999999999",
	};
	struct moment m;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(moment_parse(good[i].text, &m, NULL), 0);
		assert_int_equal(m.kind, good[i].kind);
		assert_int_equal(m.ns, good[i].ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(moment_parse(bad[i], &m, &err), -EINVAL);
		assert_non_null(err.hint);
	}
	assert_int_equal(moment_parse("frame", &m, NULL), 0);
	assert_int_equal(m.kind, MOMENT_MARK);
	assert_string_equal(m.mark, "frame");
	assert_int_equal(moment_parse("mark:+1s", &m, NULL), 0);
	assert_string_equal(m.mark, "+1s");
	assert_int_equal(moment_parse("12345678901234567890", &m, NULL), 0);
	assert_true(m.count == UINT64_C(12345678901234567890) && !m.is_fraction);
}

static void globs(void **state _unused_)
{
	char longer[600];

	assert_true(event_glob_has("sched", "sched", "sched_switch"));
	assert_true(event_glob_has("sched_sw*", "sched", "sched_switch"));
	assert_true(event_glob_has("sched:*", "sched", "sched_switch"));
	assert_true(event_glob_has(":sched_switch", "sched", "sched_switch"));
	assert_true(event_glob_has("s*:", "sched", "sched_switch"));
	assert_false(event_glob_has("", "sched", "sched_switch"));
	assert_false(event_glob_has("irq:*", "sched", "sched_switch"));
	assert_false(event_glob_has("sched:irq", "sched", "sched_switch"));
	memset(longer, '*', sizeof(longer));
	longer[500] = ':';
	longer[sizeof(longer) - 1] = '\0';
	assert_false(event_glob_has(longer, "sched", "sched_switch"));
}

static int parse(const char *text, struct error *err)
{
	struct expression e;
	int r = expression_parse(&e, text, text, err);

	if (r == 0)
		expression_deinit(&e);
	return r;
}

static void syntax(void **state _unused_)
{
	static const char *const good[] = {
		"b == 1",
		"(b == 1)",
		"!(b & 4) || c!=-0x1f",
		"b == \"x) && \" && c == '|'",
		"b",
		"!b && !!c",
		"(((b > 0x1f)))",
		"b =~ '^a.*' || b !~ \"x\"",
		"b ~ 'k*'",
		"b&1&&c",
		"1 < b",
		"b == c",
		"b + 2 == 1",
		"b == -1",
		"-b < ~c",
		"b*-2==(c - 1)/3",
		"a && b || c",
		"a || (b && c)",
		"b == \"\\\"x\"",
		"b == \"x\" \"y\"",
		"!b + 1 == 3",
		"b << 2 >> 1 ^ 3 | c % 7",
	};
	static const char *const bad[] = {
		"",
		" ",
		"b <",
		"(b == 1",
		"b == 1)",
		"b c",
		"== 1",
		"()",
		"b & & c",
		"b:c",
		"b, c",
		"!",
		"b !",
		"(b))",
		"b == 1 2",
		"b == !c",
		"a || b && c",
		"b == (c == 1)",
		"(a && b) + 1",
		"b == c == 1",
		"(b + 1) == \"x\"",
		"\"x\" == b",
		"b + \"x\"",
		"b ~ c",
		"b == \"x\\\"",
		"b == 1 +",
		"b == \"x",
		"b < 'x'",
		"b ~ 3",
		"b =~ '['",
		"b == 99999999999999999999",
		"b == 3x",
		"(b == 1) == 3",
		"b == 1 || \"x\"",
	};
	char deep[EXPRESSION_TEXT_MAX + 10];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(parse(good[i], NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(parse(bad[i], &err), -EINVAL);
		assert_non_null(err.hint);
	}
	memset(deep, '!', sizeof(deep));
	deep[EXPRESSION_DEPTH_MAX - 1] = 'b';
	deep[EXPRESSION_DEPTH_MAX] = '\0';
	assert_int_equal(parse(deep, NULL), 0);
	memset(deep, '!', sizeof(deep));
	deep[1000] = '\0';
	assert_int_equal(parse(deep, NULL), -EINVAL);
	memset(deep, ' ', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(parse(deep, NULL), -EINVAL);
}

static struct number computed(enum filter_operator op, int64_t a, int64_t b)
{
	const struct number left = { (uint64_t)a, true }, right = { (uint64_t)b, true };
	struct number n;

	assert_true(number_compute(op, left, right, &n));
	return n;
}

static void numbers(void **state _unused_)
{
	const struct number byte = number_of_field(0xff, 1, true),
			    wide = number_of_field(UINT64_MAX, 8, false),
			    word = number_of_field(UINT32_MAX, 4, false);
	struct number n;

	assert_true((int64_t)byte.bits == -1 && word.is_signed && !wide.is_signed);
	/* Numbers of different types compare exactly. */
	assert_true(number_compare(OP_LT, byte, wide) && number_compare(OP_GT, wide, word));
	assert_true(number_compare(OP_NE, byte, wide) && number_compare(OP_LE, byte, word));
	assert_true(number_compare(OP_EQ, wide, number_of_literal(UINT64_MAX)));
	/* Division and shifts are those of C. */
	assert_true((int64_t)computed(OP_DIV, -7, 2).bits == -3);
	assert_true((int64_t)computed(OP_MOD, -7, 2).bits == -1);
	assert_true((int64_t)computed(OP_SHIFT_RIGHT, -8, 1).bits == -4);
	assert_true(computed(OP_DIV, INT64_MIN, -1).bits == UINT64_C(1) << 63);
	assert_true(computed(OP_MOD, INT64_MIN, -1).bits == 0);
	assert_true(number_compute(OP_SUB, number_of_field(3, 8, false), byte, &n) && n.bits == 4 &&
		    !n.is_signed);
	assert_false(number_compute(OP_DIV, byte, number_of_literal(0), &n));
	assert_false(number_compute(OP_MOD, byte, number_of_literal(0), &n));
	assert_false(number_compute(OP_SHIFT_LEFT, byte, number_of_literal(64), &n));
	assert_false(number_compute(OP_SHIFT_LEFT, byte, byte, &n));
}

/* "-9223372036854775808" is the least signed number, not an unsigned one. */
static void least_number(void **state _unused_)
{
	const char *text = "b == -9223372036854775808";
	const struct expression_node *minus;
	struct expression e;
	struct number n;

	assert_int_equal(expression_parse(&e, text, text, NULL), 0);
	minus = &e.nodes[e.nodes[e.root].right];
	assert_int_equal(minus->kind, EXPRESSION_ARITHMETIC);
	assert_true(number_compute(minus->op, e.nodes[minus->left].number,
				   e.nodes[minus->right].number, &n));
	assert_true(number_compare(OP_EQ, n, number_of_field(UINT64_C(1) << 63, 8, true)));
	assert_true(number_compare(OP_LT, n, number_of_field(0x80, 1, true)));
	expression_deinit(&e);
}

static void names_of_events(void **state _unused_)
{
	static const struct event waking = { .system = "sched", .name = "sched_waking" },
				  entry = { .system = "irq", .name = "softirq_entry" };
	static const struct event *const both[] = { &waking, &entry };
	static const struct {
		const char *list;
		bool waking, entry;
	} good[] = {
		{ "sched_w*", true, false },
		{ " irq/soft* ", false, true },
		{ "SCHED_W.*,irq", true, true },
		{ "sched_waking\\|softirq", true, false },
		{ "waking\\|softirq_entry", false, true },
	};
	static const char *const bad[] = { "", "sched_wak", "sched_wak\\|entry", "irq,x", "\\(" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		bool chosen[2] = { false };

		assert_int_equal(event_names_choose(good[i].list, strlen(good[i].list), both, 2,
						    chosen, NULL),
				 0);
		assert_true(chosen[0] == good[i].waking && chosen[1] == good[i].entry);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(
			event_names_choose(bad[i], strlen(bad[i]), both, 2, (bool[2]){ 0 }, NULL),
			-EINVAL);
}

/* The place of what is wrong. */
static void carets(void **state _unused_)
{
	static const struct {
		const char *text;
		size_t column;
	} bad[] = {
		{ "b == 1 || c &&", 12 }, { "b + 1 == \"x\"", 9 }, { "(b == 1", 7 },
		{ "b == (c == 1)", 5 },	  { "b =~ '['", 5 },	   { "b == 1 c", 7 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		const char *line;

		assert_int_equal(parse(bad[i].text, &err), -EINVAL);
		line = strrchr(err.message, '\n') + 1;
		assert_int_equal(strspn(line, " "), 2 + bad[i].column);
		assert_string_equal(line + strspn(line, " "), "^");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments),	cmocka_unit_test(globs),
		cmocka_unit_test(syntax),	cmocka_unit_test(numbers),
		cmocka_unit_test(least_number), cmocka_unit_test(names_of_events),
		cmocka_unit_test(carets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
