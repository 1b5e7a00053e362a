/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events by SQL: which pieces are accepted, and which lines and triggers come of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/capture/plan/synthetic.h"
#include "daemon/capture/tracefs/events.h"
#include "fake_root.h"

#define GROUP "traced_0123abcd"

static const struct capture_sql usual = {
	.name = "wakeup",
	.text = "SELECT ...",
	.fields = "pid_t pid; char comm[16]; u64 lat;",
	.arguments = "c,d,e",
	.start = { "sched:sched_waking", "pid", "a=pid,b=common_timestamp.usecs", "prio < 100" },
	.end = { "sched:sched_switch", "next_pid", "c=$a,d=next_comm,e=common_timestamp.usecs-$b",
		 "" },
};

struct fixture {
	struct fake_root root;
	struct tracefs *fs;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_root_init(&f->root);
	fake_dir(&f->root, "instances");
	fake_dir(&f->root, "events/sched/sched_waking");
	fake_dir(&f->root, "events/sched/sched_switch");
	fake_file(&f->root, "events/sched/sched_waking/hist", "");
	fake_file(&f->root, "events/sched/sched_waking/format",
		  "name: sched_waking\nID: 1\nformat:\n"
		  "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		  "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
		  "\tfield:int prio;\toffset:12;\tsize:4;\tsigned:1;\n"
		  "\tfield:void * rq;\toffset:16;\tsize:8;\tsigned:0;\n\n"
		  "print fmt: \"pid=%d prio=%d rq=%p\", REC->pid, REC->prio, REC->rq\n");
	fake_file(&f->root, "events/sched/sched_switch/format",
		  "name: sched_switch\nID: 2\nformat:\n"
		  "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		  "\tfield:char next_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		  "\tfield:pid_t next_pid;\toffset:24;\tsize:4;\tsigned:1;\n\n"
		  "print fmt: \"%s %d\", REC->next_comm, REC->next_pid\n");
	fake_file(&f->root, "synthetic_events", "");
	assert_int_equal(tracefs_open(&f->fs, f->root.path, NULL), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tracefs_free(f->fs);
	fake_root_deinit(&f->root);
	free(f);
	return 0;
}

static int check(struct fixture *f, const struct capture_sql *sql, size_t count, struct error *err)
{
	const struct capture_request r = { .name = "unit", .sql = sql, .sql_count = count };

	return synthetic_check(f->fs, &r, err);
}

static void it_becomes_an_event_and_two_paused_triggers(void **state)
{
	const struct capture_request r = { .name = "unit", .sql = &usual, .sql_count = 1 };
	struct probe_list probes = { 0 };
	struct synthetic_list list = { 0 };
	struct plan plan = { 0 };

	assert_int_equal(check(*state, &usual, 1, NULL), 0);
	assert_int_equal(synthetic_plan(&plan, &r, GROUP, &probes, &list, NULL), 0);
	assert_int_equal(plan.count, 1);
	assert_int_equal(plan.steps[0].kind, PLAN_ADD);
	assert_string_equal(plan.steps[0].file, "synthetic_events");
	assert_string_equal(plan.steps[0].value,
			    "sql_0123abcd_wakeup pid_t pid; char comm[16]; u64 lat;\n");
	assert_string_equal(plan.steps[0].old, "!sql_0123abcd_wakeup\n");
	assert_int_equal(synthetic_plan_triggers(&plan, &r, &list, "boot", "traced-1-x", NULL), 0);
	assert_int_equal(plan.count, 5);
	for (size_t i = 1; i < plan.count; i++) {
		assert_int_equal(plan.steps[i].kind, PLAN_TRIGGER);
		assert_string_equal(plan.steps[i].instance, "traced-1-x");
	}
	assert_string_equal(plan.steps[1].file, "events/sched/sched_waking/trigger");
	assert_string_equal(plan.steps[1].value,
			    "hist:keys=pid:s0_a=pid,s0_b=common_timestamp.usecs:clock=boot:"
			    "size=16384:pause if prio < 100");
	assert_string_equal(plan.steps[2].file, "events/sched/sched_switch/trigger");
	assert_string_equal(plan.steps[2].value,
			    "hist:keys=next_pid:s0_c=$s0_a,s0_d=next_comm,"
			    "s0_e=common_timestamp.usecs-$s0_b:clock=boot:size=16384:pause:"
			    "onmatch(sched.sched_waking).sql_0123abcd_wakeup($s0_c,$s0_d,$s0_e)");
	/* The mark that each recording begins with. */
	assert_string_equal(plan.steps[3].file, "events/ftrace/print/trigger");
	assert_string_equal(plan.steps[3].value, "enable_hist:sched:sched_waking");
	assert_string_equal(plan.steps[4].value, "enable_hist:sched:sched_switch");
	assert_string_equal(plan.steps[4].old, "!enable_hist:sched:sched_switch");
	plan_deinit(&plan);
	synthetic_list_deinit(&list);
}

static void it_names_probes_and_earlier_events(void **state)
{
	struct capture_event_spec specs[] = { { .glob = GROUP ":opened" } };
	struct probe_list probes = { specs, 1 };
	struct capture_sql both[] = { usual, usual };
	const struct capture_request r = { .name = "unit", .sql = both, .sql_count = 2 };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct synthetic_list list = { 0 };
	struct plan plan = { 0 };

	both[1].name = "second";
	both[1].start.event = ":wakeup";
	both[1].end.event = ":opened";
	assert_int_equal(check(*state, both, 2, NULL), 0);
	assert_int_equal(synthetic_plan(&plan, &r, GROUP, &probes, &list, NULL), 0);
	assert_string_equal(list.items[1].start, "synthetic:sql_0123abcd_wakeup");
	assert_string_equal(list.items[1].end, GROUP ":opened");
	assert_true(synthetic_uses(&list, "sched:sched_switch"));
	assert_true(synthetic_uses(&list, GROUP ":opened"));
	assert_false(synthetic_uses(&list, "sched:sched_wakeup"));
	assert_int_equal(synthetic_plan_triggers(&plan, &r, &list, "boot", "x", NULL), 0);
	assert_non_null(strstr(plan.steps[5].value, "onmatch(synthetic.sql_0123abcd_wakeup)"
						    ".sql_0123abcd_second($s1_c,"));
	plan_deinit(&plan);
	synthetic_list_deinit(&list);
	/* Not itself, and none that comes later. */
	both[0].start.event = ":second";
	assert_int_equal(synthetic_plan(&plan, &r, GROUP, &probes, &list, &err), -ENOENT);
	assert_non_null(strstr(err.message, "'second'"));
	plan_deinit(&plan);
	synthetic_list_deinit(&list);
}

/* One piece of the usual event is replaced. */
static struct capture_sql changed(size_t which, const char *text)
{
	struct capture_sql sql = usual;
	const char **const pieces[] = { &sql.name,	    &sql.fields,     &sql.arguments,
					&sql.start.event,   &sql.start.keys, &sql.start.variables,
					&sql.start.filter,  &sql.end.event,  &sql.end.keys,
					&sql.end.variables, &sql.end.filter };

	*pieces[which] = text;
	return sql;
}

enum {
	NAME,
	FIELDS,
	ARGUMENTS,
	S_EVENT,
	S_KEYS,
	S_VARIABLES,
	S_FILTER,
	E_EVENT,
	E_KEYS,
	E_VARIABLES,
	E_FILTER
};

static void other_commands_are_refused(void **state)
{
	static const struct {
		size_t which;
		const char *text, *says;
	} table[] = {
		{ NAME, "", "valid name" },
		{ NAME, "1st", "valid name" },
		{ NAME, "a b", "valid name" },
		{ NAME, "a;b", "valid name" },
		{ NAME, "\xc3\xa9", "valid name" },
		{ NAME, "a2345678901234567890123456789012345678901", "valid name" },
		{ FIELDS, "", "differ in number" },
		{ FIELDS, "pid_t pid; u64 lat;", "differ in number" },
		{ FIELDS, "pid_t pid; char comm[16]; u64 lat; u8 x;", "differ in number" },
		{ FIELDS, "pid_t pid; char comm[16]; u64 pid;", "same name: 'pid'" },
		{ FIELDS, "pid_t pid; u64 comm[16]; u64 lat;", "no field" },
		{ FIELDS, "pid_t pid; char comm[16; u64 lat;", "no field" },
		{ FIELDS, "pid_t pid; char comm[x]; u64 lat;", "no field" },
		{ FIELDS, "pid_t pid; struct x comm; u64 lat;", "no field" },
		{ FIELDS, "pid_t pid; stacktrace comm; u64 lat;", "no field" },
		{ FIELDS, "pid_t pid;; u64 lat;", "no field" },
		{ ARGUMENTS, "c,d", "differ in number" },
		{ ARGUMENTS, "c,d,a", "no variable" },
		{ ARGUMENTS, "c,d,e).snapshot(", "no variable" },
		{ S_EVENT, "sched_waking", "names no event" },
		{ S_EVENT, "sched:", "names no event" },
		{ S_EVENT, "../sched:x", "names no event" },
		{ S_EVENT, "sched:a/b", "names no event" },
		{ E_EVENT, "sched:sched_switch).x(", "names no event" },
		{ S_KEYS, "", "no field to join on" },
		{ S_KEYS, "pid:vals=prio", "no field to join on" },
		{ S_KEYS, "pid,", "no field to join on" },
		{ S_KEYS, "a,b,c,d", "3 fields at most" },
		{ S_KEYS, "pid,prio", "different numbers" },
		{ E_KEYS, "stacktrace.x", "no field to join on" },
		{ S_VARIABLES, "", "no variable" },
		{ S_VARIABLES, "a", "no variable" },
		{ S_VARIABLES, "a=,b=x", "no variable" },
		{ S_VARIABLES, "a=pid:pause,b=x", "no variable" },
		{ S_VARIABLES, "a=pid,a=prio,b=prio", "same name" },
		{ S_VARIABLES, "a=$b,b=x", "no variable" },
		{ S_VARIABLES, "a=pid.hex,b=x", "no variable" },
		{ S_VARIABLES, "a=pid+-1,b=x", "no variable" },
		{ S_VARIABLES, "a=pid+prio+pid,b=x", "no variable" },
		{ S_VARIABLES, "a=pid+,b=x", "no variable" },
		{ S_VARIABLES, "a=pid if x,b=x", "no variable" },
		{ E_VARIABLES, "c=$x,d=next_comm,e=next_pid", "no variable" },
		{ E_VARIABLES, "c=$a:onmax($c).snapshot(),d=x,e=$b", "no variable" },
		{ E_VARIABLES, "c=next_pid,d=next_comm,e=next_pid", "nothing of the first" },
		{ S_FILTER, "prio < 1\n!hist", "control character" },
		{ E_FILTER, "x == \"\x7f\"", "control character" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct capture_sql sql = changed(table[i].which, table[i].text);
		_cleanup_error_ struct error err = ERROR_INIT;
		int r = check(*state, &sql, 1, &err);

		if (r != -EINVAL || !strstr(err.message, table[i].says))
			fail_msg("%zu, '%s': %d, %s", i, table[i].text, r, err.message);
	}
}

static void what_the_request_excludes(void **state)
{
	const struct capture_sql twice[] = { usual, usual };
	const char *const traceon[] = { "vfs_read:traceon" };
	const struct capture_trigger on = { .event = "sched:sched_switch", .action = "traceon:1" };
	const struct cpu_set cpus = { 0 };
	struct fixture *f = *state;
	struct capture_request r = { .name = "unit", .sql = &usual, .sql_count = 1 };
	_cleanup_error_ struct error err = ERROR_INIT;

	r.top_level = true;
	assert_int_equal(synthetic_check(f->fs, &r, &err), -EINVAL);
	assert_non_null(strstr(err.message, "--top-level"));
	r.top_level = false;
	r.cpus = &cpus;
	assert_int_equal(synthetic_check(f->fs, &r, &err), -EINVAL);
	assert_non_null(strstr(err.message, "--cpus"));
	r.cpus = NULL;
	r.functions.only = (struct capture_words){ traceon, 1 };
	assert_int_equal(synthetic_check(f->fs, &r, &err), -EINVAL);
	assert_non_null(strstr(err.message, "turns tracing on"));
	r.functions.only = (struct capture_words){ 0 };
	r.triggers = &on;
	r.trigger_count = 1;
	assert_int_equal(synthetic_check(f->fs, &r, &err), -EINVAL);
	assert_non_null(strstr(err.message, "a trigger that turns tracing on"));
	assert_int_equal(check(f, twice, 2, &err), -EINVAL);
	assert_non_null(strstr(err.message, "two events by SQL are called 'wakeup'"));
	r = (struct capture_request){ .sql = &usual, .sql_count = SYNTHETIC_MAX + 1 };
	assert_int_equal(synthetic_check(f->fs, &r, &err), -E2BIG);
}

static void what_the_kernel_lacks_is_named(void **state)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct fixture *f = *state;

	unlink(fake_path(&f->root, "events/sched/sched_waking/hist"));
	assert_int_equal(check(f, &usual, 1, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "CONFIG_HIST_TRIGGERS"));
	unlink(fake_path(&f->root, "synthetic_events"));
	assert_int_equal(check(f, &usual, 1, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "CONFIG_SYNTH_EVENTS"));
	assert_non_null(strstr(err.hint, "-e sched:sched_waking -e sched:sched_switch"));
}

static int check_as_user(struct fixture *f, const struct capture_sql *sql,
			 struct capture_event_bounds bounds, struct error *err)
{
	struct capture_request r = { .name = "u", .sql = sql, .sql_count = 1, .bounds = bounds };
	struct probe_list probes = { 0 };
	struct synthetic_list list = { 0 };
	struct plan plan = { 0 };
	int code;

	assert_int_equal(synthetic_plan(&plan, &r, GROUP, &probes, &list, NULL), 0);
	code = synthetic_check_user(f->fs, &r, &list, err);
	plan_deinit(&plan);
	synthetic_list_deinit(&list);
	return code;
}

static void users_get_open_fields_only(void **state)
{
	static const char *const sched[] = { "sched" };
	struct capture_event_bounds bounds = { .hide_addresses = true };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture_sql sql;

	assert_int_equal(check_as_user(*state, &usual, bounds, NULL), 0);
	sql = changed(S_VARIABLES, "a=rq,b=common_timestamp");
	assert_int_equal(check_as_user(*state, &sql, bounds, &err), -EPERM);
	assert_non_null(strstr(err.message, "'rq' of sched:sched_waking is a pointer"));
	assert_int_equal(check_as_user(*state, &sql, (struct capture_event_bounds){ 0 }, NULL), 0);
	sql = changed(S_KEYS, "rq");
	assert_int_equal(check_as_user(*state, &sql, bounds, &err), -EPERM);
	sql = changed(S_FILTER, "rq > 5");
	assert_int_equal(check_as_user(*state, &sql, bounds, &err), -EPERM);
	sql = changed(E_VARIABLES, "c=$a,d=stacktrace,e=next_pid-$b");
	assert_int_equal(check_as_user(*state, &sql, bounds, &err), -EPERM);
	sql = changed(E_VARIABLES, "c=$a,d=next_comm,e=no_such-$b");
	assert_int_equal(check_as_user(*state, &sql, bounds, &err), -EINVAL);
	/* Events that root keeps for itself. */
	bounds = (struct capture_event_bounds){ .never = { sched, 1 } };
	assert_int_equal(check_as_user(*state, &usual, bounds, &err), -EPERM);
	assert_non_null(strstr(err.message, "'sched:sched_waking'"));
	bounds = (struct capture_event_bounds){ .only = { sched, 1 } };
	assert_int_equal(check_as_user(*state, &usual, bounds, &err), -EPERM);
	assert_non_null(strstr(err.hint, "events_allowed"));
}

static void globs_do_not_match_our_events(void **state _unused_)
{
	static const char ours[] = "synthetic:sql_0123abcd_wakeup";

	assert_true(event_glob_matches(ours, ours));
	assert_false(event_glob_matches("*:*", ours));
	assert_false(event_glob_matches("synthetic", ours));
	assert_true(event_glob_matches("synthetic", "synthetic:wakeup"));
	assert_true(event_glob_matches("synthetic", "synthetic:sql_0123abcx_wakeup"));
	assert_true(event_glob_matches("synthetic", "synthetic:sql_0123abcd"));
	assert_true(event_glob_matches("sched", "sched:sql_0123abcd_x"));
}

/* Appends a histogram as a hist file shows it. */
static void put_hist(struct buf *out, const char *trigger, const char *entries, unsigned dropped)
{
	buf_printf(out,
		   "%s# event histogram\n#\n# trigger info: %s\n#\n\n%s\nTotals:\n    Hits: 9\n"
		   "    Entries: 3\n    Dropped: %u\n",
		   out->len ? "\n\n" : "", trigger, entries, dropped);
	assert_non_null(buf_string(out));
}

static void drops_are_reported(void **state)
{
	struct synthetic_event item = { .start = (char *)"sched:sched_waking",
					.end = (char *)"sched:sched_switch" };
	const struct synthetic_list list = { &item, 1 };
	_cleanup_buf_ struct buf start = BUF_INIT, end = BUF_INIT;
	struct capture_report report = { 0 };
	struct fixture *f = *state;

	fake_dir(&f->root, "instances/traced-1-x/events/sched/sched_waking");
	fake_dir(&f->root, "instances/traced-1-x/events/sched/sched_switch");
	put_hist(&end, "hist:keys=next_pid:vals=hitcount:s0_c=$s0_a", "", 0);
	fake_file(&f->root, "instances/traced-1-x/events/sched/sched_switch/hist", end.data);
	synthetic_report_drops(&list, f->fs, "traced-1-x", &report);
	assert_int_equal(report.warning_count, 0);
	/* A task's name looks like the end. */
	put_hist(&start, "hist:keys=comm:vals=hitcount:s0_a=pid",
		 "{ comm: \n    Dropped: 9 } hitcount:          1\n", 5);
	put_hist(&start, "hist:keys=pid:vals=hitcount:sort=hitcount:size=2048", "", 70);
	put_hist(&start, "hist:keys=pid:vals=hitcount:s12_a=pid", "", 2);
	fake_file(&f->root, "instances/traced-1-x/events/sched/sched_waking/hist", start.data);
	synthetic_report_drops(&list, f->fs, "traced-1-x", &report);
	assert_int_equal(report.warning_count, 1);
	assert_non_null(strstr(report.warnings[0], "7 events sched:sched_waking"));
	assert_int_equal(report.warnings_missing, 1);
	report_deinit(&report);
}

static void the_kernels_reason_is_shown(void **state)
{
	const struct capture_request r = { .name = "unit", .sql = &usual, .sql_count = 1 };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct probe_list probes = { 0 };
	struct synthetic_list list = { 0 };
	struct plan plan = { 0 };
	struct fixture *f = *state;

	fake_dir(&f->root, "instances/x");
	fake_file(&f->root, "error_log",
		  "[  1.2] synthetic_events: error: Invalid field\n"
		  "  Command: x\n           ^\n");
	fake_file(&f->root, "instances/x/error_log",
		  "[  1.2] hist:sched:sched_waking: error: Bad\n"
		  "  Command: x\n           ^\n");
	assert_int_equal(synthetic_plan(&plan, &r, GROUP, &probes, &list, NULL), 0);
	assert_int_equal(synthetic_plan_triggers(&plan, &r, &list, "boot", "x", NULL), 0);
	assert_int_equal(plan_explain(&plan.steps[0], f->fs, -EINVAL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "refuses the SQL event 'wakeup'"));
	assert_non_null(strstr(err.message, "Invalid field\n"));
	assert_int_equal(plan_explain(&plan.steps[1], f->fs, -EINVAL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "refuses the trigger 'hist:keys=pid:"));
	assert_non_null(strstr(err.message, "           ^"));
	plan_deinit(&plan);
	synthetic_list_deinit(&list);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_becomes_an_event_and_two_paused_triggers),
		TEST(it_names_probes_and_earlier_events),
		TEST(other_commands_are_refused),
		TEST(what_the_request_excludes),
		TEST(what_the_kernel_lacks_is_named),
		TEST(users_get_open_fields_only),
		cmocka_unit_test(globs_do_not_match_our_events),
		TEST(drops_are_reported),
		TEST(the_kernels_reason_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
