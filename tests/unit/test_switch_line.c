/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of sched_switch as Trace Viewer accepts them, for any task names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "formats/json/switch_line.h"
#include "print/event_table.h"

#define SWITCH "sched_switch: prev_comm="

static const struct {
	const char *kernel, *portable; /* NULL: the same */
} lines[] = {
	{ SWITCH "a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=0",
	  NULL },
	{ SWITCH "a prev_pid=1 prev_prio=120 prev_state=R+ ==> next_comm=b next_pid=2 next_prio=9",
	  NULL },
	{ SWITCH "a prev_pid=1 prev_prio=120 prev_state=I ==> next_comm=b next_pid=2 next_prio=9",
	  SWITCH "a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=9" },
	{ SWITCH "a prev_pid=1 prev_prio=120 prev_state=X+ ==> next_comm=b next_pid=2 next_prio=9",
	  SWITCH "a prev_pid=1 prev_prio=120 prev_state=X ==> next_comm=b next_pid=2 next_prio=9" },
	{ SWITCH "a prev_pid=1 prev_prio=-1 prev_state=S ==> next_comm=b next_pid=2 next_prio=9",
	  SWITCH "a prev_pid=1 prev_prio=0 prev_state=S ==> next_comm=b next_pid=2 next_prio=9" },
	{ SWITCH "a prev_pid=1 prev_prio=-1 prev_state=I ==> next_comm=b next_pid=2 next_prio=-100",
	  SWITCH "a prev_pid=1 prev_prio=0 prev_state=S ==> next_comm=b next_pid=2 next_prio=0" },
	/* Names that look like something else. */
	{ SWITCH "> ==> prev_pid=1 prev_prio=12 prev_state=S ==> next_comm==> next_pid=2 "
		 "next_prio=9",
	  NULL },
	{ SWITCH "prev_state=I prev_pid=1 prev_prio=12 prev_state=D ==> next_comm= prev_state=I "
		 "next_pid=2 next_prio=9",
	  NULL },
	{ SWITCH "a prev_pid=1 prev_prio=12 prev_state=S ==> next_comm= next_prio=-7 next_pid=2 "
		 "next_prio=9",
	  NULL },
	{ SWITCH " prev_prio=-7 prev_pid=1 prev_prio=12 prev_state=S ==> next_comm=b next_pid=2 "
		 "next_prio=9",
	  NULL },
	{ SWITCH " prev_prio=-7 prev_pid=1 prev_prio=-1 prev_state=I ==> next_comm= next_prio=-7 "
		 "next_pid=2 next_prio=-1",
	  SWITCH " prev_prio=-7 prev_pid=1 prev_prio=0 prev_state=S ==> next_comm= next_prio=-7 "
		 "next_pid=2 next_prio=0" },
	/* Truncated, or from no kernel. */
	{ SWITCH "a prev_pid=1 prev_prio=120 prev_state=S ==> next_com", NULL },
	{ SWITCH "a prev_pid=1 prev_prio=120 ==> next_comm=b next_pid=2 next_prio=", NULL },
	{ "==> next_comm=", NULL },
	{ "> ==> next_comm=", NULL },
	{ "", NULL },
};

static void test_switches(void **state _unused_)
{
	const struct record record = { 0 };
	struct switch_line s;

	switch_line_init(&s, NULL, false);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT;

		buf_puts(&b, "before ");
		buf_puts(&b, lines[i].kernel);
		switch_line_fix(&s, &record, &b, 7);
		buf_putc(&b, '\0');
		assert_memory_equal(b.data, "before ", 7);
		assert_string_equal(b.data + 7, lines[i].portable ?: lines[i].kernel);
	}
}

/* A record of prev_prio, next_prio and prev_state, and the kernel's text of it. */
static void check_values(struct switch_line *s, int32_t prev_prio, int32_t next_prio, int64_t state,
			 const char *letters, const char *expected)
{
	_cleanup_buf_ struct buf b = BUF_INIT, wanted = BUF_INIT;
	uint8_t data[16];

	memcpy(data, &prev_prio, 4);
	memcpy(data + 4, &next_prio, 4);
	memcpy(data + 8, &state, 8);
	buf_printf(&b,
		   SWITCH "a prev_pid=1 prev_prio=%d prev_state=%s ==> next_comm=b next_pid=2 "
			  "next_prio=%d",
		   prev_prio, letters, next_prio);
	buf_printf(&wanted,
		   SWITCH "a prev_pid=1 prev_prio=%d prev_state=%s ==> next_comm=b next_pid=2 "
			  "next_prio=%d",
		   MAX(prev_prio, 0), expected, MAX(next_prio, 0));
	switch_line_fix(s, &(struct record){ .data = data, .len = sizeof(data) }, &b, 0);
	assert_string_equal(buf_string(&b), buf_string(&wanted));
}

/* The cache remembers what a record's values need, and nothing else. */
static void test_known_values(void **state _unused_)
{
	static const struct field fields[] = {
		{ .name = "prev_prio", .offset = 0, .size = 4 },
		{ .name = "next_prio", .offset = 4, .size = 4 },
		{ .name = "prev_state", .offset = 8, .size = 8 },
	};
	const struct event event = { .fields = fields, .field_count = ARRAY_SIZE(fields) };
	struct switch_line s;

	switch_line_init(&s, &event, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	for (int i = 0; i < 3; i++) {
		check_values(&s, 120, 120, 1, "S", "S");
		check_values(&s, 120, -1, 1, "S", "S");
		check_values(&s, -1, 120, 1, "S", "S");
		check_values(&s, 0, 120, 128, "I", "S");
		check_values(&s, 0, 120, 257, "S+", "S");
		check_values(&s, 0, -100, 128, "I", "S");
	}
	assert_int_equal(s.known_count, 1);
	for (int64_t v = 1; v < 100; v++)
		check_values(&s, 1, 2, v, "S", "S");
	check_values(&s, 1, 2, 1000, "I", "S");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_known_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
