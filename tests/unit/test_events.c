/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/capture/tracefs/events.h"

static const char *const names[] = {
	"irq:irq_handler_entry",	  "irq:softirq_entry",	"kvm:kvm_entry",
	"sched:sched_process_exit",	  "sched:sched_switch", "sched:sched_waking",
	"syscalls:sys_enter_sched_yield", "timer:timer_start",
};

static void globs_have_four_forms(void **state _unused_)
{
	assert_true(event_glob_matches("sched", "sched:sched_switch"));
	assert_true(event_glob_matches("sched_switch", "sched:sched_switch"));
	assert_true(event_glob_matches("sched_*", "sched:sched_switch"));
	assert_true(event_glob_matches("sched:*", "sched:sched_switch"));
	assert_true(event_glob_matches("sched:", "sched:sched_switch"));
	assert_true(event_glob_matches(":sched_switch", "sched:sched_switch"));
	assert_true(event_glob_matches("*:sched_sw*", "sched:sched_switch"));
	assert_true(event_glob_matches("*:*", "sched:sched_switch"));
	assert_false(event_glob_matches("sched", "syscalls:sys_enter_sched_yield"));
	assert_false(event_glob_matches("sched:", "irq:softirq_entry"));
	assert_false(event_glob_matches("irq:sched_switch", "sched:sched_switch"));
	assert_false(event_glob_matches("", "sched:sched_switch"));
	assert_false(event_glob_matches("sched", "no colon"));
}

static void each_event_once_in_order(void **state _unused_)
{
	const struct capture_event_spec specs[] = { { .glob = "sched" },
						    { .glob = "*_switch" },
						    { .glob = "irq:*" } };
	_cleanup_event_matches_ struct event_matches m = { 0 };

	assert_int_equal(event_matches_find(&m, specs, 3, NULL, names, ARRAY_SIZE(names), NULL), 0);
	assert_int_equal(m.count, 5);
	assert_string_equal(m.items[0].name, "irq:irq_handler_entry");
	assert_string_equal(m.items[4].name, "sched:sched_waking");
}

static void libtraceds_event_is_taken_by_name(void **state _unused_)
{
	static const char *const all[] = { "sched:a", "user_events:mine",
					   "user_events:traced_mark" };
	static const struct {
		const char *glob;
		size_t count;
		bool whole;
	} cases[] = { { "*:*", 2, true },
		      { "user_events", 1, false },
		      { "user_events:traced_mark", 1, false },
		      { "traced_mark", 1, false } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct capture_event_spec spec = { .glob = cases[i].glob };
		_cleanup_event_matches_ struct event_matches m = { 0 };

		assert_int_equal(event_matches_find(&m, &spec, 1, NULL, all, ARRAY_SIZE(all), NULL),
				 0);
		assert_int_equal(m.count, cases[i].count);
		assert_int_equal(m.items[0].whole_system, cases[i].whole);
		assert_false(m.items[m.count - 1].whole_system);
	}
}

static void whole_systems_are_known(void **state _unused_)
{
	static const char *const all[] = {
		"irq:a", "irq:b", "irqx:a", "sched:a", "sched:b", "x:a"
	};
	const struct capture_event_spec specs[] = { { .glob = "irq" },
						    { .glob = "sched:b" },
						    { .glob = "x:a" } };
	static const bool whole[] = { true, true, false, true };
	_cleanup_event_matches_ struct event_matches m = { 0 };

	assert_int_equal(event_matches_find(&m, specs, 3, NULL, all, ARRAY_SIZE(all), NULL), 0);
	assert_int_equal(m.count, 4);
	for (size_t i = 0; i < m.count; i++)
		assert_int_equal(m.items[i].whole_system, whole[i]);
}

static void last_filter_counts(void **state _unused_)
{
	const struct capture_event_spec specs[] = { { .glob = "sched", .filter = "a" },
						    { .glob = "sched_switch", .filter = "b" },
						    { .glob = "sched_waking" } };
	_cleanup_event_matches_ struct event_matches m = { 0 };

	assert_int_equal(event_matches_find(&m, specs, 3, NULL, names, ARRAY_SIZE(names), NULL), 0);
	assert_int_equal(m.count, 3);
	assert_string_equal(m.items[0].filter, "a");
	assert_string_equal(m.items[1].filter, "b");
	assert_null(m.items[2].filter);
}

static void one_glob_without_a_match_fails_all(void **state _unused_)
{
	const struct capture_event_spec specs[] = { { .glob = "irq" }, { .glob = "shced" } };
	_cleanup_event_matches_ struct event_matches m = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(event_matches_find(&m, specs, 2, NULL, names, ARRAY_SIZE(names), &err),
			 -ENOENT);
	assert_non_null(strstr(err.message, "'shced'"));
	assert_non_null(strstr(err.hint, "'sched'"));
	assert_null(m.items);
}

static void event_names_are_suggested_too(void **state _unused_)
{
	const struct capture_event_spec bare = { .glob = "timer_strat" },
					full = { .glob = "timer:timer_strat" };
	_cleanup_event_matches_ struct event_matches m = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(event_matches_find(&m, &bare, 1, NULL, names, ARRAY_SIZE(names), &err),
			 -ENOENT);
	assert_non_null(strstr(err.hint, "'timer_start'"));
	assert_int_equal(event_matches_find(&m, &full, 1, NULL, names, ARRAY_SIZE(names), &err),
			 -ENOENT);
	assert_non_null(strstr(err.hint, "'timer:timer_start'"));
}

static void a_system_that_the_kernel_lacks_is_named(void **state _unused_)
{
	static const char *const with[] = { "syscalls:sys_enter_read" };
	static const char *const without[] = { "sched:sched_switch" };
	static const struct {
		const char *glob, *hint;
	} table[] = {
		{ "syscalls", "boot a kernel with CONFIG_FTRACE_SYSCALLS" },
		{ "syscalls:sys_enter_openat", "boot a kernel with CONFIG_FTRACE_SYSCALLS" },
		{ "osnoise:*", "boot a kernel with CONFIG_OSNOISE_TRACER" },
		/* No program may have registered one, too. */
		{ "user_events:x", "programs register these events, if the kernel has them "
				   "(CONFIG_USER_EVENTS, Linux 6.4)" },
	};
	struct capture_event_spec spec = { .glob = "syscalls:sys_enter_raed" };
	_cleanup_event_matches_ struct event_matches m = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(event_matches_find(&m, &spec, 1, NULL, with, 1, &err), -ENOENT);
	assert_null(strstr(err.hint, "CONFIG_"));
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		spec.glob = table[i].glob;
		assert_int_equal(event_matches_find(&m, &spec, 1, NULL, without, 1, &err), -ENOENT);
		assert_string_equal(err.hint, table[i].hint);
	}
}

static void typing_errors_get_a_hint(void **state _unused_)
{
	static const struct {
		const char *glob, *hint;
	} table[] = {
		{ "swtich", "'sched_switch'" },
		{ "sched:swtich", "'sched:sched_switch'" },
		{ "all", "'*:*'" },
		{ "sched,irq", "one -e for each" },
		{ "sched/sched_switch", "a colon" },
		{ "shced:sched_switch", "'sched:sched_switch'" },
		{ "user_events:traced_mark", "TRACED_USER_EVENTS=1" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct capture_event_spec spec = { .glob = table[i].glob };
		_cleanup_event_matches_ struct event_matches m = { 0 };
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(
			event_matches_find(&m, &spec, 1, NULL, names, ARRAY_SIZE(names), &err),
			-ENOENT);
		if (!strstr(err.hint, table[i].hint))
			fail_msg("%s: '%s' lacks '%s'", table[i].glob, err.hint, table[i].hint);
	}
}

static void bounds_leave_events_out(void **state _unused_)
{
	static const char *const never[] = { "sched:sched_w*", "kvm" };
	static const char *const only[] = { "sched", "irq:softirq_entry" };
	const struct capture_event_bounds bounds = { .never = { never, 2 } };
	const struct capture_event_bounds both = { .only = { only, 2 }, .never = { never, 2 } };
	const struct capture_event_spec sched[] = { { .glob = "sched" },
						    { .glob = "sched:sched_s*" } };
	const struct capture_event_spec kvm = { .glob = "*:kvm_entry" }, irq = { .glob = "irq" },
					all = { .glob = "*:*" }, timer = { .glob = "timer" };
	_cleanup_event_matches_ struct event_matches m = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(event_matches_find(&m, sched, 2, &bounds, names, ARRAY_SIZE(names), NULL),
			 0);
	assert_int_equal(m.count, 2);
	assert_int_equal(m.left_out, 1);
	/* Otherwise enabling the system would enable the event that is left out. */
	assert_false(m.items[0].whole_system || m.items[1].whole_system);
	event_matches_deinit(&m);
	assert_int_equal(event_matches_find(&m, &kvm, 1, &bounds, names, ARRAY_SIZE(names), &err),
			 -EPERM);
	assert_non_null(strstr(err.message, "'*:kvm_entry'"));
	assert_non_null(strstr(err.hint, "events_denied"));
	assert_int_equal(event_matches_find(&m, &timer, 1, &both, names, ARRAY_SIZE(names), &err),
			 -EPERM);
	assert_int_equal(event_matches_find(&m, &irq, 1, &both, names, ARRAY_SIZE(names), &err), 0);
	assert_int_equal(m.count, 1);
	assert_string_equal(m.items[0].name, "irq:softirq_entry");
	assert_int_equal(m.left_out, 1);
	event_matches_deinit(&m);
	assert_int_equal(event_matches_find(&m, &all, 1, &both, names, ARRAY_SIZE(names), &err), 0);
	assert_int_equal(m.count, 3);
	assert_int_equal(m.left_out, ARRAY_SIZE(names) - 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(globs_have_four_forms),
		cmocka_unit_test(each_event_once_in_order),
		cmocka_unit_test(libtraceds_event_is_taken_by_name),
		cmocka_unit_test(whole_systems_are_known),
		cmocka_unit_test(last_filter_counts),
		cmocka_unit_test(one_glob_without_a_match_fails_all),
		cmocka_unit_test(event_names_are_suggested_too),
		cmocka_unit_test(a_system_that_the_kernel_lacks_is_named),
		cmocka_unit_test(typing_errors_get_a_hint),
		cmocka_unit_test(bounds_leave_events_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
