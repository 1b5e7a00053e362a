/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Triggers of events: which actions are taken, whose events and fields they may use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/capture/plan/event_triggers.h"
#include "daemon/capture/tracefs/events.h"
#include "fake_root.h"

#define FIELD(decl) "\tfield:" decl ";\toffset:8;\tsize:8;\tsigned:0;\n"

static const char format[] =
	"name: x\nID: 1\nformat:\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n" FIELD("int irq")
		FIELD("void * ptr") "\nprint fmt: \"irq=%d ptr=%p\", REC->irq, REC->ptr\n";
static const char *const names[] = { "irq:entry", "irq:exit", "sched:wake",
				     "traced_0123abcd:mine" };

struct fixture {
	struct fake_root root;
	struct tracefs *fs;
	struct capture_env env;
	char proc[128];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	fake_root_init(&f->root);
	fake_dir(&f->root, "instances/traced-1-x/events/irq/entry");
	fake_file(&f->root, "events/irq/entry/format", format);
	fake_file(&f->root, "events/irq/exit/format", format);
	fake_file(&f->root, "events/sched/wake/format", format);
	fake_file(&f->root, "proc/sys/kernel/osrelease", "6.1.0-9\n");
	assert_int_equal(tracefs_open(&f->fs, f->root.path, NULL), 0);
	snprintf(f->proc, sizeof(f->proc), "%s/proc", f->root.path);
	f->env = (struct capture_env){ .tracefs = f->fs, .proc = f->proc };
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

static struct capture_request request_of(const struct capture_trigger *t, size_t count)
{
	return (struct capture_request){ .name = "unit", .triggers = t, .trigger_count = count };
}

static int check(const struct fixture *f, const char *action, struct error *err)
{
	const struct capture_trigger t = { .event = "irq:entry", .action = action };
	const struct capture_request r = request_of(&t, 1);

	return event_triggers_check(&f->env, &r, err);
}

static void actions_of_the_kernel_are_taken(void **state)
{
	static const char *const actions[] = {
		"traceon",
		"traceoff:1",
		"stacktrace:999999999 if irq == 1",
		"stacktrace  if  irq == 1 || (irq == 2)",
		"stacktrace\tif\tirq == 1",
		"enable_event:irq:exit",
		"enable_event:irq:exit:3",
		"disable_event:irq:exit:3 if irq == 1",
		"enable_event:net_dev-x.y:z_1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;

		if (check(*state, actions[i], &err) < 0)
			fail_msg("'%s': %s", actions[i], err.message);
	}
}

static void hostile_actions_are_refused(void **state)
{
	static const struct {
		const char *action;
		int code;
		const char *says;
	} cases[] = {
		{ "", -EINVAL, "no trigger ''" },
		{ "stacktrac", -EINVAL, "no trigger 'stacktrac'" },
		{ "!stacktrace", -EINVAL, "no trigger '!stacktrace'" },
		{ "snapshot", -EOPNOTSUPP, "takes the events out" },
		{ "snapshot:1 if irq == 1", -EOPNOTSUPP, "takes the events out" },
		{ "hist:keys=irq", -EOPNOTSUPP, "its result" },
		{ "enable_hist:irq:exit", -EOPNOTSUPP, "its result" },
		{ "eprobe", -EINVAL, "no trigger 'eprobe'" },
		{ "traceoff:", -EINVAL, "a count is" },
		{ "traceoff:0", -EINVAL, "a count is" },
		{ "traceoff:0x10", -EINVAL, "a count is" },
		{ "traceoff:-1", -EINVAL, "a count is" },
		{ "traceoff:1:2", -EINVAL, "only 'if FILTER'" },
		{ "traceoff:99999999999999999999", -EINVAL, "a count is" },
		{ "traceoff:1x", -EINVAL, "only 'if FILTER'" },
		{ "traceoff when irq == 1", -EINVAL, "only 'if FILTER'" },
		{ "traceoff ifirq == 1", -EINVAL, "only 'if FILTER'" },
		{ "traceoff if", -EINVAL, "only 'if FILTER'" },
		{ "traceoff if ", -EINVAL, "a filter is missing" },
		{ "enable_event", -EINVAL, "lacks ':SYSTEM:EVENT'" },
		{ "enable_event:irq", -EINVAL, "SYSTEM:EVENT" },
		{ "enable_event::exit", -EINVAL, "SYSTEM:EVENT" },
		{ "enable_event:irq:", -EINVAL, "name is missing" },
		{ "enable_event:irq:*", -EINVAL, "one event" },
		{ "enable_event:../irq:exit", -EINVAL, "one event" },
		{ "enable_event:irq:exit:0", -EINVAL, "a count is" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		int r = check(*state, cases[i].action, &err);

		if (r != cases[i].code || !strstr(err.message, cases[i].says))
			fail_msg("'%s': %d, %s", cases[i].action, r, err.message ?: "");
	}
}

static void the_caret_is_below_the_mistake(void **state)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(check(*state, "enable_event:irq:ex*t:3", &err), -EINVAL);
	assert_string_equal(err.message, "the trigger: the name of one event is needed\n"
					 "  enable_event:irq:ex*t:3\n"
					 "                     ^");
}

static void a_long_action_is_refused(void **state)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	char action[10000];

	memset(action, 'a', sizeof(action));
	memcpy(action, "traceoff if ", strlen("traceoff if "));
	action[sizeof(action) - 1] = '\0';
	assert_int_equal(check(*state, action, &err), -E2BIG);
	assert_true(strlen(err.message) < 300);
}

static void the_buffer_of_another_is_not_switched(void **state)
{
	const struct capture_trigger t = { .event = "irq:entry", .action = "traceoff" };
	struct capture_request r = request_of(&t, 1);
	struct fixture *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;

	r.top_level = true;
	assert_int_equal(event_triggers_check(&f->env, &r, &err), -EINVAL);
	assert_non_null(strstr(err.message, "--top-level"));
	error_deinit(&err);
	fake_file(&f->root, "proc/sys/kernel/osrelease", "5.10.0-30\n");
	assert_int_equal(check(f, "traceoff", &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.hint, "5.17"));
	error_deinit(&err);
	assert_int_equal(check(f, "stacktrace", &err), -EOPNOTSUPP);
	error_deinit(&err);
	assert_int_equal(check(f, "enable_event:irq:exit", &err), 0);
}

static void a_trigger_without_an_event_is_refused(void **state)
{
	const struct capture_trigger t = { .probe = 1, .action = "traceoff" };
	const struct capture_request r = request_of(&t, 1);
	struct fixture *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(event_triggers_check(&f->env, &r, &err), -EINVAL);
	assert_non_null(strstr(err.message, "has no event"));
}

struct planned {
	struct trigger_plans plans;
	struct trigger_targets targets;
	struct error err;
	int r;
};

static void plan_of(struct planned *p, const struct fixture *f, const struct capture_request *r)
{
	static struct capture_event_spec mine = { .glob = "traced_0123abcd:mine" };
	const struct probe_list probes = { .specs = &mine, .count = 1 };

	*p = (struct planned){ .err = ERROR_INIT };
	p->r = event_triggers_plan(&p->plans, f->fs, r, &probes, "traced-1-x", names,
				   ARRAY_SIZE(names), &p->targets, &p->err);
}

static void planned_deinit(struct planned *p)
{
	trigger_plans_deinit(&p->plans);
	trigger_targets_deinit(&p->targets);
	error_deinit(&p->err);
}

static void each_matched_event_gets_the_trigger(void **state)
{
	static const struct capture_trigger triggers[] = {
		{ .event = "irq", .action = "stacktrace:3 if irq == 1" },
		{ .event = "entry", .action = "enable_event:sched:wake" },
		{ .event = "irq:exit", .action = "traceoff:1" },
		{ .probe = 1, .action = "traceoff if irq > 1" },
	};
	static const struct {
		const char *file, *value;
	} after[] = {
		{ "events/irq/entry/trigger", "stacktrace:3 if irq == 1" },
		{ "events/irq/exit/trigger", "stacktrace:3 if irq == 1" },
	}, before[] = {
		{ "events/irq/entry/trigger", "enable_event:sched:wake" },
		/* The kernel would act before the event is recorded. */
		{ "events/irq/exit/trigger", "traceoff:1 if common_pid >= 0" },
		{ "events/traced_0123abcd/mine/trigger", "traceoff if irq > 1" },
	};
	struct capture_request r = request_of(triggers, ARRAY_SIZE(triggers));
	struct planned p;

	plan_of(&p, *state, &r);
	if (p.r < 0)
		fail_msg("%s", p.err.message);
	assert_int_equal(p.plans.before.count, ARRAY_SIZE(before));
	assert_int_equal(p.plans.after.count, ARRAY_SIZE(after));
	for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
		assert_string_equal(p.plans.before.steps[i].file, before[i].file);
		assert_string_equal(p.plans.before.steps[i].value, before[i].value);
		assert_string_equal(p.plans.before.steps[i].instance, "traced-1-x");
	}
	for (size_t i = 0; i < ARRAY_SIZE(after); i++) {
		assert_string_equal(p.plans.after.steps[i].file, after[i].file);
		assert_string_equal(p.plans.after.steps[i].value, after[i].value);
		assert_string_equal(p.plans.after.steps[i].instance, "traced-1-x");
	}
	assert_int_equal(p.targets.count, 1);
	assert_string_equal(p.targets.names[0], "sched:wake");
	planned_deinit(&p);
}

static void the_events_of_traceoff_are_recorded(void **state _unused_)
{
	static const struct capture_trigger triggers[] = {
		{ .event = "irq:entry", .action = "traceoff if irq == 1" },
		{ .event = "irq:exit", .action = "stacktrace" },
		{ .probe = 1, .action = "traceoff" },
		{ .event = "sched:wake", .action = "traceoff:2" },
	};
	const struct capture_request r = request_of(triggers, ARRAY_SIZE(triggers));
	struct capture_event_spec specs[ARRAY_SIZE(triggers)];
	_cleanup_buf_ struct buf text = BUF_INIT;

	assert_int_equal(event_triggers_specs(&r, specs), 2);
	assert_string_equal(specs[0].glob, "irq:entry");
	assert_string_equal(specs[0].filter, "irq == 1");
	assert_string_equal(specs[1].glob, "sched:wake");
	assert_null(specs[1].filter);
	event_triggers_put_off(&r, &text);
	assert_string_equal(buf_string(&text),
			    "irq:entry: traceoff if irq == 1; traceoff; sched:wake: traceoff:2");
	assert_true(event_triggers_have(&r, "stacktrace"));
	assert_false(event_triggers_have(&r, "traceon"));
}

static void assert_refused(struct fixture *f, const struct capture_request *r, int code,
			   const char *says)
{
	struct planned p;

	plan_of(&p, f, r);
	if (p.r != code || !strstr(p.err.message, says))
		fail_msg("%d, %s", p.r, p.err.message ?: "");
	planned_deinit(&p);
}

/* To set and to remove hundreds takes minutes. */
static void a_glob_has_few_triggers(void **state)
{
	static const struct capture_trigger t = { .event = "irq", .action = "stacktrace" };
	const struct capture_request r = request_of(&t, 1);
	char texts[TRIGGERS_MAX + 1][16];
	const char *many[TRIGGERS_MAX + 1];
	const struct fixture *f = *state;

	for (size_t i = 0; i <= TRIGGERS_MAX; i++) {
		snprintf(texts[i], sizeof(texts[i]), "irq:e%02zu", i);
		many[i] = texts[i];
	}
	for (size_t count = TRIGGERS_MAX; count <= TRIGGERS_MAX + 1; count++) {
		struct planned p = { .err = ERROR_INIT };

		p.r = event_triggers_plan(&p.plans, f->fs, &r, NULL, "traced-1-x", many, count,
					  &p.targets, &p.err);
		assert_int_equal(p.r, count > TRIGGERS_MAX ? -E2BIG : 0);
		planned_deinit(&p);
	}
}

static void what_is_not_there_is_named(void **state)
{
	const struct capture_trigger missing = { .event = "irq:entri", .action = "traceoff" };
	const struct capture_trigger target = { .event = "irq:entry",
						.action = "enable_event:sched:wakes" };
	const struct capture_trigger twice[] = {
		{ .event = "irq", .action = "stacktrace" },
		{ .event = "irq:exit", .action = "stacktrace:3 if irq == 1" },
	};
	const struct capture_trigger on_off[] = {
		{ .event = "irq:exit", .action = "traceon" },
		{ .event = "irq:exit", .action = "traceoff:1 if irq == 1" },
	};
	const struct capture_trigger targets[] = {
		{ .event = "irq:exit", .action = "enable_event:sched:wake" },
		{ .event = "irq:exit", .action = "disable_event:sched:wake if irq == 1" },
	};
	struct capture_request r = request_of(&missing, 1);
	struct planned p;

	plan_of(&p, *state, &r);
	assert_int_equal(p.r, -ENOENT);
	assert_non_null(strstr(p.err.hint, "'irq:entry'"));
	planned_deinit(&p);
	r = request_of(&target, 1);
	plan_of(&p, *state, &r);
	assert_int_equal(p.r, -ENOENT);
	assert_non_null(strstr(p.err.hint, "'sched:wake'"));
	planned_deinit(&p);
	r = request_of(twice, 2);
	assert_refused(*state, &r, -EEXIST,
		       "irq:exit has the triggers 'stacktrace' and 'stacktrace'");
	r = request_of(on_off, 2);
	assert_refused(*state, &r, -EEXIST, "irq:exit has the triggers 'traceon' and 'traceoff'");
	r = request_of(targets, 2);
	assert_refused(*state, &r, -EEXIST,
		       "the triggers 'enable_event:sched:wake' and 'disable_event'");
}

static void users_keep_to_their_events_and_open_fields(void **state)
{
	static const char *const denied[] = { "sched" };
	const struct capture_trigger address = { .event = "irq:entry",
						 .action = "stacktrace if ptr > 1" };
	const struct capture_trigger open = { .event = "irq:entry",
					      .action = "stacktrace if irq > 1" };
	const struct capture_trigger on = { .event = "sched:wake", .action = "stacktrace" };
	const struct capture_trigger target = { .event = "irq:entry",
						.action = "enable_event:sched:wake" };
	struct capture_request r = request_of(&address, 1);
	struct planned p;

	r.bounds = (struct capture_event_bounds){ .never = { denied, 1 }, .hide_addresses = true };
	assert_refused(*state, &r, -EPERM, "only root may compare 'ptr'");
	r.triggers = &on;
	assert_refused(*state, &r, -EPERM, "only root may record 'sched:wake'");
	r.triggers = &target;
	assert_refused(*state, &r, -EPERM, "only root may record 'sched:wake'");
	r.triggers = &open;
	plan_of(&p, *state, &r);
	assert_int_equal(p.r, 0);
	planned_deinit(&p);
}

static void a_refusal_names_what_the_kernel_lacks(void **state)
{
	struct fixture *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct plan plan = { 0 };

	fake_file(&f->root, "instances/traced-1-x/events/irq/entry/trigger",
		  "# Available triggers:\n# traceon traceoff enable_event disable_event\n");
	plan_trigger(&plan, "traced-1-x", "events/irq/entry/trigger", "stacktrace:3 if irq == 1");
	plan_trigger(&plan, "traced-1-x", "events/irq/entry/trigger", "traceoff if irk == 1");
	plan_explain(&plan.steps[0], f->fs, -EINVAL, &err);
	assert_string_equal(err.message,
			    "this kernel has no trigger 'stacktrace': it lacks CONFIG_STACKTRACE");
	assert_string_equal(err.hint, "it has: traceon traceoff enable_event disable_event");
	error_deinit(&err);
	plan_explain(&plan.steps[1], f->fs, -EINVAL, &err);
	assert_non_null(strstr(err.message, "refuses the trigger 'traceoff if irk == 1' for event "
					    "irq:entry"));
	assert_non_null(strstr(err.hint, "did you mean 'irq'?"));
	plan_deinit(&plan);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(actions_of_the_kernel_are_taken),
		TEST(hostile_actions_are_refused),
		TEST(the_caret_is_below_the_mistake),
		TEST(a_long_action_is_refused),
		TEST(the_buffer_of_another_is_not_switched),
		TEST(a_trigger_without_an_event_is_refused),
		TEST(each_matched_event_gets_the_trigger),
		TEST(a_glob_has_few_triggers),
		TEST(the_events_of_traceoff_are_recorded),
		TEST(what_is_not_there_is_named),
		TEST(users_keep_to_their_events_and_open_fields),
		TEST(a_refusal_names_what_the_kernel_lacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
