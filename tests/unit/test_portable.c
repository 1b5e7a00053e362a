/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of sched_switch as Trace Viewer takes them, whatever the tasks are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "export/json/portable.h"

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
	/* Comms that look like something else. */
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
	/* Cut off, or of no kernel. */
	{ SWITCH "a prev_pid=1 prev_prio=120 prev_state=S ==> next_com", NULL },
	{ SWITCH "a prev_pid=1 prev_prio=120 ==> next_comm=b next_pid=2 next_prio=", NULL },
	{ "==> next_comm=", NULL },
	{ "> ==> next_comm=", NULL },
	{ "", NULL },
};

static void test_switches(void **state _unused_)
{
	const struct event event = { .name = "sched_switch" };
	struct portable p = { .sched_switch = &event };
	const struct trace_event ev = { .desc = &event };

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT;

		buf_puts(&b, "before ");
		buf_puts(&b, lines[i].kernel);
		assert_int_equal(portable_fix(&p, &ev, &b, 7), PORTABLE_EVENT);
		buf_putc(&b, '\0');
		assert_memory_equal(b.data, "before ", 7);
		assert_string_equal(b.data + 7, lines[i].portable ?: lines[i].kernel);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
