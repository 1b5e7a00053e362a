/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests for the function tracers: checked and planned, on a folder in place of tracefs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/capture/plan/functions.h"
#include "daemon/capture/tracefs/function_list.h"
#include "daemon/capture/tracefs/setting.h"
#include "fake_root.h"

struct fixture {
	struct fake_root root;
	struct capture_env env;
	struct plan plan;
	struct error err;
	struct capture_request request;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_root_init(&f->root);
	fake_dir(&f->root, "events");
	fake_dir(&f->root, "instances");
	fake_file(&f->root, "available_tracers", "function_graph function nop\n");
	fake_file(&f->root, "available_filter_functions",
		  "vfs_read\nvfs_write\nschedule\n__ftrace_invalid_address___12\n"
		  "ext4_read [ext4]\nksys_read\n");
	fake_file(&f->root, "options/func_stack_trace", "0\n");
	fake_file(&f->root, "options/irq-info", "1\n");
	fake_file(&f->root, "set_graph_function", "#### all functions enabled ####\n");
	fake_file(&f->root, "max_graph_depth", "0\n");
	fake_file(&f->root, "events/sched/sched_switch/enable", "0\n");
	assert_int_equal(tracefs_open(&f->env.tracefs, f->root.path, NULL), 0);
	f->env.proc = f->root.path;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	plan_deinit(&f->plan);
	error_deinit(&f->err);
	tracefs_free(f->env.tracefs);
	fake_root_deinit(&f->root);
	free(f);
	return 0;
}

#define WORDS(...)                                                                                 \
	((struct capture_words){ .items = (const char *const[]){ __VA_ARGS__ },                    \
				 .count = sizeof((const char *const[]){ __VA_ARGS__ }) /           \
					  sizeof(char *) })

static int checked(struct fixture *f, const struct capture_functions *functions)
{
	error_deinit(&f->err);
	f->err = ERROR_INIT;
	f->request.functions = *functions;
	return functions_check(&f->env, &f->request, &f->err);
}
#define CHECK(...) checked(f, &(struct capture_functions){ __VA_ARGS__ })

static void assert_hint(const struct fixture *f, const char *part)
{
	if (!f->err.hint || !strstr(f->err.hint, part))
		fail_msg("the hint of '%s' is '%s', without '%s'", f->err.message, f->err.hint,
			 part);
}

static void known_names_are_accepted(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(CHECK(.tracer = "function"), 0);
	assert_int_equal(CHECK(.tracer = "function", .only = WORDS("vfs_*", "*:mod:ext4")), 0);
	assert_int_equal(CHECK(.tracer = "function", .only = WORDS(":mod:ext4")), 0);
	assert_int_equal(CHECK(.tracer = "function", .only = WORDS("*", "!vfs_*")), 0);
	assert_int_equal(CHECK(.tracer = "function_graph", .roots = WORDS("vfs_*"), .depth = 3), 0);
	/* Triggers need no tracer. */
	assert_int_equal(CHECK(.only = WORDS("schedule:traceoff:1", "vfs_read:stacktrace",
					     "vfs_read:enable_event:sched:sched_switch")),
			 0);
}

static void unknown_names_get_the_nearest(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(CHECK(.tracer = "functoin"), -ENOENT);
	assert_hint(f, "did you mean 'function'?");
	assert_int_equal(CHECK(.tracer = "function", .only = WORDS("vsf_read")), -ENOENT);
	assert_hint(f, "'vfs_read'");
	assert_int_equal(CHECK(.tracer = "function", .only = WORDS("vsf_*")), -ENOENT);
	assert_hint(f, "'vfs_*'");
	assert_int_equal(CHECK(.tracer = "function", .never = WORDS("shedule")), -ENOENT);
	assert_hint(f, "'schedule'");
	assert_int_equal(CHECK(.tracer = "function", .only = WORDS("*:mod:ext3")), -ENOENT);
	assert_hint(f, "'ext4'");
	assert_int_equal(CHECK(.tracer = "function_graph", .roots = WORDS("vfs_raed")), -ENOENT);
	assert_hint(f, "'vfs_read'");
	assert_int_equal(CHECK(.only = WORDS("schedule:traceof")), -EINVAL);
	assert_hint(f, "traceoff");
	assert_int_equal(CHECK(.only = WORDS("schedule:stack_trace")), -EINVAL);
	assert_hint(f, "'schedule:stacktrace'");
	assert_int_equal(CHECK(.only = WORDS("schedule:enable_event:sched:no_such")), -ENOENT);
	f->request.options = WORDS("func_stak_trace");
	assert_int_equal(CHECK(.tracer = NULL), -ENOENT);
	assert_hint(f, "'func_stack_trace'");
}

static void what_the_kernel_lacks_is_named(void **state)
{
	static const struct {
		const char *option, *hint;
	} options[] = {
		{ "stacktrace", "boot a kernel with CONFIG_STACKTRACE" },
		{ "nofuncgraph-retval",
		  "boot a kernel with CONFIG_FUNCTION_GRAPH_RETVAL, Linux 6.5" },
		{ "funcgraph-tail", "boot a kernel with CONFIG_FUNCTION_GRAPH_TRACER" },
		{ "copy_trace_marker", "boot Linux 6.16 or newer" },
	}, similar[] = {
		{ "funcgraph-retval",
		  "boot a kernel with CONFIG_FUNCTION_GRAPH_RETVAL, Linux 6.5" },
		{ "funcgraph-retval-hex",
		  "boot a kernel with CONFIG_FUNCTION_GRAPH_RETVAL, Linux 6.5" },
		{ "funcgraph-args", "boot a kernel with CONFIG_FUNCTION_TRACE_ARGS, Linux 6.15" },
		{ "funcgraph-tial", "did you mean 'funcgraph-tail'?" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		f->request.options = WORDS(options[i].option);
		assert_int_equal(CHECK(.tracer = NULL), -ENOENT);
		assert_string_equal(f->err.hint, options[i].hint);
	}
	/* A kernel with function_graph has options of similar names. */
	fake_file(&f->root, "options/funcgraph-tail", "0\n");
	for (size_t i = 0; i < ARRAY_SIZE(similar); i++) {
		f->request.options = WORDS(similar[i].option);
		assert_int_equal(CHECK(.tracer = NULL), -ENOENT);
		assert_string_equal(f->err.hint, similar[i].hint);
	}
	f->request.options = (struct capture_words){ 0 };
	fake_file(&f->root, "available_tracers", "function nop\n");
	assert_int_equal(CHECK(.tracer = "function_graph"), -ENOENT);
	assert_string_equal(f->err.hint, "boot a kernel with CONFIG_FUNCTION_GRAPH_TRACER; this "
					 "one has: function nop");
	/* A kernel that has it would not help. */
	assert_int_equal(CHECK(.tracer = "wakeup"), -EOPNOTSUPP);
	assert_hint(f, "--report runq");
	fake_file(&f->root, "available_tracers", "function_graph nop\n");
	assert_int_equal(CHECK(.tracer = "function"), -ENOENT);
	assert_hint(f, "boot a kernel with CONFIG_FUNCTION_TRACER; ");
	unlink(fake_path(&f->root, "available_filter_functions"));
	assert_int_equal(CHECK(.only = WORDS("vfs_read:traceoff")), -ENOENT);
	assert_string_equal(f->err.hint,
			    "boot a kernel with CONFIG_FUNCTION_TRACER and CONFIG_DYNAMIC_FTRACE; "
			    "events can still be recorded");
}

static void requests_that_record_nothing_are_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
		CHECK(.tracer = "function", .only = WORDS("vfs_*"), .never = WORDS("vfs*")),
		-EINVAL);
	assert_int_equal(CHECK(.tracer = "function_graph", .only = WORDS("vfs_*"),
			       .roots = WORDS("schedule")),
			 -EINVAL);
	assert_hint(f, "-l 'schedule'");
	assert_int_equal(CHECK(.only = WORDS("vfs_*")), -EINVAL);
	assert_int_equal(CHECK(.never = WORDS("vfs_*")), -EINVAL);
	assert_int_equal(CHECK(.tracer = "function", .depth = 1), -EINVAL);
	assert_string_equal(f->err.message, "--max-graph-depth needs the function_graph tracer");
	assert_hint(f, "leave out -p function");
	assert_int_equal(CHECK(.depth = 1), -EINVAL);
	assert_hint(f, "add -p function_graph");
	assert_int_equal(CHECK(.tracer = "function", .roots = WORDS("vfs_*")), -EINVAL);
	assert_string_equal(f->err.message, "-g needs the function_graph tracer");
	assert_int_equal(CHECK(.tracer = "function", .only = WORDS("vfs_read ksys_read")), -EINVAL);
	assert_int_equal(CHECK(.only = WORDS("schedule:snapshot")), -EOPNOTSUPP);
}

static void stacks_of_everything_are_refused(void **state)
{
	struct fixture *f = *state;

	f->request.options = WORDS("func_stack_trace");
	assert_int_equal(CHECK(.tracer = "function"), -EINVAL);
	assert_int_equal(CHECK(.tracer = "function", .only = WORDS("vfs_read")), 0);
}

static void roots_in_use_are_left_alone(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "set_graph_function", "schedule\n");
	assert_int_equal(CHECK(.tracer = "function_graph", .roots = WORDS("vfs_read")), -EBUSY);
	assert_int_equal(CHECK(.tracer = "function_graph"), 0);
}

static const struct plan_step *step_of(const struct fixture *f, const char *file)
{
	for (size_t i = 0; i < f->plan.count; i++)
		if (strcmp(f->plan.steps[i].file, file) == 0)
			return &f->plan.steps[i];
	fail_msg("no step writes %s", file);
	return NULL;
}

/* last: 1 is the last step. */
static void assert_trigger(const struct fixture *f, size_t last, const char *line, const char *undo)
{
	const struct plan_step *s = &f->plan.steps[f->plan.count - last];

	assert_int_equal(s->kind, PLAN_ADD);
	assert_string_equal(s->value, line);
	assert_string_equal(s->old, undo);
}

static void the_plan_of_an_instance(void **state)
{
	struct fixture *f = *state;

	f->request.options = WORDS("func_stack_trace", "noirq-info");
	f->request.functions = (struct capture_functions){
		.tracer = "function",
		.only = WORDS("vfs_*", "schedule:traceoff:1", "ksys_read", "vfs_read:traceon:2",
			      "vfs_open:traceon", "do_exit:enable_event:irq:softirq_entry:3",
			      "do_exit:disable_event:irq:softirq_entry"),
		.never = WORDS("vfs_write"),
	};
	functions_plan(&f->plan, &f->env, &f->request, "i");
	assert_false(f->plan.failed);
	assert_string_equal(step_of(f, "set_ftrace_filter")->value, "vfs_*\nksys_read\n");
	assert_true(functions_have_command(&f->request, "traceoff"));
	assert_string_equal(step_of(f, "set_ftrace_notrace")->value, "vfs_write\n");
	/* On many kernels all instances share one value: it is restored. */
	assert_int_equal(step_of(f, "options/func_stack_trace")->kind, PLAN_SET);
	assert_int_equal(step_of(f, "options/irq-info")->kind, PLAN_WRITE);
	assert_string_equal(step_of(f, "options/irq-info")->value, "0");
	assert_string_equal(step_of(f, "current_tracer")->value, "function");
	assert_trigger(f, 3, "schedule:traceoff:1\n", "!schedule:traceoff:0\n");
	assert_trigger(f, 2, "do_exit:enable_event:irq:softirq_entry:3\n",
		       "!do_exit:enable_event:irq:softirq_entry:0\n");
	assert_trigger(f, 1, "do_exit:disable_event:irq:softirq_entry\n",
		       "!do_exit:disable_event:irq:softirq_entry\n");
}

/* They are undone when the recording ends, and not with its instance. */
static void a_function_that_turns_on_is_planned_alone(void **state)
{
	struct fixture *f = *state;

	f->request.functions.only = (struct capture_words)WORDS(
		"vfs_read:traceon:2", "vfs_*", "vfs_open:traceon", "schedule:traceoff");
	functions_plan_on(&f->plan, &f->request, "i");
	assert_int_equal(f->plan.count, 2);
	assert_trigger(f, 2, "vfs_read:traceon:2\n", "!vfs_read:traceon:0\n");
	assert_trigger(f, 1, "vfs_open:traceon\n", "!vfs_open:traceon\n");
	assert_string_equal(f->plan.steps[0].file, "instances/i/set_ftrace_filter");
}

/* An event of the top level that a function enables is as before afterwards. */
static void an_enabled_event_is_put_back(void **state)
{
	struct fixture *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct journal j;

	fake_dir(&f->root, "state");
	fake_file(&f->root, "set_ftrace_filter", "");
	fake_file(&f->root, "set_ftrace_notrace_pid", "no pid\n");
	fake_file(&f->root, "events/irq/softirq_entry/enable", "0*\n");
	f->request.functions.only =
		(struct capture_words)WORDS("do_exit:enable_event:irq:softirq_entry:3");
	functions_plan(&f->plan, &f->env, &f->request, NULL);
	assert_int_equal(journal_create(&j, fake_path(&f->root, "state"), "traced-1-unit", &err),
			 0);
	assert_int_equal(plan_apply(&f->plan, f->env.tracefs, &j, &err), 0);
	fake_file(&f->root, "events/irq/softirq_entry/enable", "1\n");
	assert_int_equal(plan_undo(&f->plan, f->env.tracefs), 0);
	assert_string_equal(fake_text(&f->root, "events/irq/softirq_entry/enable"), "0");
	journal_drop(&j);
}

/* Their formats must be in the stream. */
static void events_that_functions_enable_are_found(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = { "irq:softirq", "irq:softirq_entry",
					     "sched:sched_switch" };
	struct trigger_targets targets = { 0 };

	f->request.functions.only =
		(struct capture_words)WORDS("vfs_*", "vfs_read:enable_event:sched:sched_switch",
					    "do_exit:disable_event:irq:softirq_entry:3",
					    "do_exit:enable_event:irq:none", "vfs_read:traceoff:1");
	assert_int_equal(
		functions_find_targets(&f->request, names, ARRAY_SIZE(names), &targets, NULL), 0);
	assert_int_equal(targets.count, 2);
	assert_ptr_equal(targets.names[0], names[2]);
	assert_ptr_equal(targets.names[1], names[1]);
	trigger_targets_deinit(&targets);
}

static void the_plan_of_the_top_level_is_undone(void **state)
{
	struct fixture *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct journal j;
	char journal[512];

	fake_dir(&f->root, "state");
	fake_file(&f->root, "current_tracer", "nop\n");
	fake_file(&f->root, "set_ftrace_filter",
		  "ext4_read [ext4]\nschedule\n*:mod:xfs\nvfs_read:traceoff:unlimited\n");
	fake_file(&f->root, "set_ftrace_notrace_pid", "no pid\n");
	fake_file(&f->root, "options/function-fork", "0");
	fake_dir(&f->root, "self/task/4711");
	f->request.functions = (struct capture_functions){
		.tracer = "function_graph",
		.only = WORDS("vfs_*"),
		.roots = WORDS("vfs_read"),
		.depth = 2,
	};
	functions_plan(&f->plan, &f->env, &f->request, NULL);
	assert_int_equal(journal_create(&j, fake_path(&f->root, "state"), "traced-1-unit", &err),
			 0);
	assert_int_equal(plan_apply(&f->plan, f->env.tracefs, &j, &err), 0);
	assert_string_equal(fake_text(&f->root, "current_tracer"), "function_graph");
	assert_string_equal(fake_text(&f->root, "set_ftrace_filter"), "vfs_*\n");
	assert_string_equal(fake_text(&f->root, "set_graph_function"), "vfs_read\n");
	assert_string_equal(fake_text(&f->root, "max_graph_depth"), "2");
	/* The recorder's threads, and those to come. */
	assert_non_null(strstr(fake_text(&f->root, "set_ftrace_notrace_pid"), " 4711\n"));
	assert_string_equal(fake_text(&f->root, "options/function-fork"), "1");
	snprintf(journal, sizeof(journal), "%.500s",
		 fake_text(&f->root, "state/traced-1-unit.journal"));
	assert_int_equal(plan_undo(&f->plan, f->env.tracefs), 0);
	assert_string_equal(fake_text(&f->root, "current_tracer"), "nop");
	assert_string_equal(fake_text(&f->root, "set_ftrace_filter"),
			    "ext4_read\nschedule\n*:mod:xfs\n");
	assert_string_equal(fake_text(&f->root, "set_graph_function"), "");
	assert_string_equal(fake_text(&f->root, "max_graph_depth"), "0");
	/* The next start restores the same from the journal. */
	fake_file(&f->root, "set_ftrace_filter", "vfs_*\n");
	fake_file(&f->root, "current_tracer", "function_graph");
	assert_true(journal_undo(f->env.tracefs, journal, strlen(journal), NULL) > 0);
	assert_string_equal(fake_text(&f->root, "set_ftrace_filter"),
			    "ext4_read\nschedule\n*:mod:xfs\n");
	assert_string_equal(fake_text(&f->root, "current_tracer"), "nop");
	journal_drop(&j);
}

static void an_option_of_another_tracer_is_refused(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "trace_options", "print-parent\nnofunc_stack_trace\nirq-info\n");
	f->request.options = WORDS("irq-info", "nofunc_stack_trace");
	assert_int_equal(functions_verify(&f->request, tracefs_root(f->env.tracefs), &f->err), 0);
	f->request.options = WORDS("funcgraph-tail");
	assert_int_equal(functions_verify(&f->request, tracefs_root(f->env.tracefs), &f->err),
			 -EINVAL);
}

static void the_top_level_is_taken_only_if_it_is_free(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "current_tracer", "nop\n");
	fake_file(&f->root, "events/enable", "0\n");
	fake_file(&f->root, "per_cpu/cpu0/stats", "entries: 0\noverrun: 0\n");
	assert_int_equal(toplevel_check(f->env.tracefs, &f->err), 0);
	fake_file(&f->root, "per_cpu/cpu0/stats", "entries: 7\noverrun: 0\n");
	assert_int_equal(toplevel_check(f->env.tracefs, &f->err), -EBUSY);
	assert_hint(f, "tracectl extract");
	fake_file(&f->root, "events/enable", "X\n");
	assert_int_equal(toplevel_check(f->env.tracefs, &f->err), -EBUSY);
	fake_file(&f->root, "current_tracer", "function\n");
	assert_int_equal(toplevel_check(f->env.tracefs, &f->err), -EBUSY);
	assert_non_null(strstr(f->err.message, "'function'"));
}

static void settings_in_the_words_that_set_them(void **state _unused_)
{
	static const struct {
		const char *file, *says, *set;
	} cases[] = {
		{ "trace_clock", "local [boot] mono", "boot" },
		{ "buffer_size_kb", "7 (expanded: 1408)", "1408" },
		{ "buffer_size_kb", "512", "512" },
		{ "set_ftrace_pid", "no pid", "" },
		{ "set_event_pid", "12\n34", "12\n34\n" },
		{ "set_ftrace_notrace", "#### no functions disabled ####", "" },
		{ "options/overwrite", "1", "1" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct buf out = BUF_INIT;

		assert_int_equal(setting_text(cases[i].file, cases[i].says, &out), 0);
		assert_string_equal(buf_string(&out), cases[i].set);
	}
	assert_int_equal(setting_text("buffer_size_kb", "X", NULL), -EBUSY);
}

static void setup_latencies(struct fixture *f)
{
	fake_file(&f->root, "available_tracers",
		  "hwlat timerlat osnoise irqsoff wakeup function_graph function nop\n");
	fake_file(&f->root, "current_tracer", "nop\n");
	fake_file(&f->root, "tracing_thresh", "0\n");
	fake_file(&f->root, "osnoise/timerlat_period_us", "1000\n");
	fake_file(&f->root, "osnoise/cpus", "0-3\n");
	fake_file(&f->root, "osnoise/stop_tracing_us", "0\n");
	fake_file(&f->root, "osnoise/stop_tracing_total_us", "0\n");
	fake_dir(&f->root, "instances");
}

static void latencies_need_no_functions(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(CHECK(.tracer = "timerlat"), -ENOENT);
	assert_hint(f, "CONFIG_TIMERLAT_TRACER");
	/* A name that no kernel has. */
	assert_int_equal(CHECK(.tracer = "timerlatt"), -ENOENT);
	assert_hint(f, "did you mean 'timerlat'? For that, boot a kernel with "
		       "CONFIG_TIMERLAT_TRACER; this one has: ");
	assert_int_equal(CHECK(.tracer = "functoin"), -ENOENT);
	assert_hint(f, "did you mean 'function'? It has: ");
	assert_int_equal(CHECK(.tracer = "nopp"), -ENOENT);
	assert_hint(f, "events can still be recorded");
	setup_latencies(f);
	unlink(fake_path(&f->root, "available_filter_functions"));
	assert_int_equal(CHECK(.tracer = "timerlat", .stop_us = 50,
			       .settings = WORDS("period=1ms", "cpus=0-1", "print-stack=20us")),
			 0);
	assert_int_equal(CHECK(.tracer = "osnoise", .settings = WORDS("runtime=0.5s")), 0);
	assert_int_equal(CHECK(.tracer = "hwlat", .settings = WORDS("width=500ms")), 0);
}

static void wrong_settings_are_refused(void **state)
{
	struct fixture *f = *state;

	setup_latencies(f);
	assert_int_equal(CHECK(.tracer = "timerlat", .settings = WORDS("runtime=1ms")), -EINVAL);
	assert_hint(f, "period, print-stack, cpus");
	assert_int_equal(CHECK(.tracer = "timerlat", .settings = WORDS("period")), -EINVAL);
	assert_int_equal(CHECK(.tracer = "timerlat", .settings = WORDS("perio=1ms")), -EINVAL);
	assert_int_equal(CHECK(.tracer = "timerlat", .settings = WORDS("period=1parsec")), -EINVAL);
	assert_int_equal(CHECK(.tracer = "timerlat", .settings = WORDS("period=1.5h")), -EINVAL);
	assert_int_equal(CHECK(.tracer = "timerlat", .settings = WORDS("cpus=x")), -EINVAL);
	assert_int_equal(CHECK(.tracer = "timerlat", .only = WORDS("vfs_*")), -EINVAL);
	assert_int_equal(CHECK(.tracer = "function", .stop_us = 50), -EINVAL);
	assert_hint(f, "-p timerlat");
	assert_string_equal(f->err.message, "--stop-us needs a tracer of latencies");
	assert_int_equal(CHECK(.settings = WORDS("period=1ms")), -EINVAL);
	assert_string_equal(f->err.message, "--tracer-option needs a tracer of latencies");
	assert_int_equal(CHECK(.tracer = "hwlat", .stop_us = 50), -EINVAL);
	assert_int_equal(CHECK(.tracer = "irqsoff"), -EOPNOTSUPP);
	assert_non_null(strstr(f->err.message, "as text only"));
	assert_hint(f, "-p timerlat");
	assert_int_equal(CHECK(.tracer = "wakeup"), -EOPNOTSUPP);
	assert_hint(f, "--report runq");
	/* Settings are global: somebody's tracer runs with them. */
	fake_file(&f->root, "instances/other/current_tracer", "osnoise\n");
	assert_int_equal(CHECK(.tracer = "timerlat", .stop_us = 50), -EBUSY);
	assert_int_equal(CHECK(.tracer = "osnoise"), 0);
}

static void settings_of_latencies_are_restored(void **state)
{
	_cleanup_(journal_drop) struct journal j = { .fd = -EBADF };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct fixture *f = *state;
	char journal[1024];

	setup_latencies(f);
	fake_dir(&f->root, "state");
	f->request.functions = (struct capture_functions){
		.tracer = "timerlat",
		.settings = WORDS("period=100us", "cpus=0,2"),
		.stop_us = 50,
	};
	functions_plan(&f->plan, &f->env, &f->request, NULL);
	assert_int_equal(journal_create(&j, fake_path(&f->root, "state"), "traced-1-unit", &err),
			 0);
	assert_int_equal(plan_apply(&f->plan, f->env.tracefs, &j, &err), 0);
	assert_string_equal(fake_text(&f->root, "osnoise/timerlat_period_us"), "100");
	assert_string_equal(fake_text(&f->root, "osnoise/cpus"), "0,2");
	assert_string_equal(fake_text(&f->root, "osnoise/stop_tracing_us"), "50");
	assert_string_equal(fake_text(&f->root, "osnoise/stop_tracing_total_us"), "50");
	assert_string_equal(fake_text(&f->root, "current_tracer"), "timerlat");
	snprintf(journal, sizeof(journal), "%.1000s",
		 fake_text(&f->root, "state/traced-1-unit.journal"));
	/* The next start restores the same from the journal. */
	assert_true(journal_undo(f->env.tracefs, journal, strlen(journal), NULL) > 0);
	assert_string_equal(fake_text(&f->root, "osnoise/timerlat_period_us"), "1000");
	assert_string_equal(fake_text(&f->root, "osnoise/cpus"), "0-3");
	assert_string_equal(fake_text(&f->root, "osnoise/stop_tracing_us"), "0");
	assert_string_equal(fake_text(&f->root, "osnoise/stop_tracing_total_us"), "0");
	assert_string_equal(fake_text(&f->root, "current_tracer"), "nop");
}

static void hwlat_takes_its_threshold_last(void **state)
{
	struct fixture *f = *state;

	f->request.functions = (struct capture_functions){
		.tracer = "hwlat",
		.settings = WORDS("threshold=20us", "width=1ms"),
	};
	functions_plan(&f->plan, &f->env, &f->request, "traced-1-unit");
	assert_int_equal(f->plan.count, 3);
	assert_string_equal(f->plan.steps[0].file, "hwlat_detector/width");
	assert_string_equal(f->plan.steps[1].file, "current_tracer");
	assert_string_equal(f->plan.steps[2].file, "tracing_thresh");
	assert_string_equal(f->plan.steps[2].value, "20");
	assert_int_equal(f->plan.steps[2].kind, PLAN_SET);
}

/* Two requests pass the check, and then are applied in slices, the first one's before the other. */
static int apply_two(struct fixture *f, unsigned slices, struct plan *other)
{
	struct journal j[2] = { { .fd = -EBADF }, { .fd = -EBADF } };
	int r = 1;

	error_deinit(&f->err);
	f->err = ERROR_INIT;
	fake_dir(&f->root, "state");
	functions_plan(&f->plan, &f->env, &f->request, "traced-1-unit");
	functions_plan(other, &f->env, &f->request, "traced-1-other");
	journal_create(&j[0], fake_path(&f->root, "state"), "traced-1-unit", NULL);
	journal_create(&j[1], fake_path(&f->root, "state"), "traced-1-other", NULL);
	while (r > 0 && slices--)
		r = plan_apply_slice(&f->plan, f->env.tracefs, &j[0], 0, &f->err);
	assert_true(r >= 0);
	r = plan_apply(other, f->env.tracefs, &j[1], &f->err);
	assert_int_equal(plan_undo(&f->plan, f->env.tracefs), 0);
	assert_int_equal(plan_undo(other, f->env.tracefs), 0);
	plan_deinit(other);
	journal_drop(&j[0]);
	journal_drop(&j[1]);
	return r;
}

static void roots_are_free_when_they_are_set(void **state)
{
	struct plan other = { 0 };
	struct fixture *f = *state;

	for (int i = 0; i < 2; i++) {
		fake_file(&f->root,
			  i ? "instances/traced-1-other/current_tracer"
			    : "instances/traced-1-unit/current_tracer",
			  "nop\n");
		fake_file(&f->root,
			  i ? "instances/traced-1-other/set_ftrace_notrace_pid"
			    : "instances/traced-1-unit/set_ftrace_notrace_pid",
			  "");
	}
	f->request.functions = (struct capture_functions){
		.tracer = "function_graph",
		.roots = WORDS("vfs_read"),
	};
	assert_int_equal(apply_two(f, 1, &other), -EBUSY);
	assert_non_null(strstr(f->err.message, "set_graph_function"));
	assert_string_equal(fake_text(&f->root, "set_graph_function"), "");
}

static void settings_are_free_when_they_are_set(void **state)
{
	struct plan other = { 0 };
	struct fixture *f = *state;

	setup_latencies(f);
	fake_file(&f->root, "instances/traced-1-unit/current_tracer", "nop\n");
	fake_file(&f->root, "instances/traced-1-other/current_tracer", "nop\n");
	f->request.functions = (struct capture_functions){
		.tracer = "timerlat",
		.settings = WORDS("period=100us", "cpus=0,2"),
	};
	/* The settings and the tracer are one slice, however short it should be. */
	assert_int_equal(apply_two(f, 1, &other), -EBUSY);
	assert_non_null(strstr(f->err.message, "timerlat"));
	assert_string_equal(fake_text(&f->root, "osnoise/cpus"), "0-3");
}

static void setup_options(struct fixture *f, const char *release)
{
	static const char *const of_instance[] = { "current_tracer", "options/func_stack_trace",
						   "options/func-no-repeats", "set_ftrace_filter",
						   "set_ftrace_notrace_pid" };
	static const char *const option[] = { "func-no-repeats" }, *const glob[] = { "vfs_*" };
	char path[128];

	fake_file(&f->root, "sys/kernel/osrelease", release);
	fake_file(&f->root, "options/func-no-repeats", "0\n");
	fake_file(&f->root, "current_tracer", "nop\n");
	for (size_t i = 0; i < 2 * ARRAY_SIZE(of_instance); i++) {
		snprintf(path, sizeof(path), "instances/traced-1-%s/%s", i % 2 ? "other" : "unit",
			 of_instance[i / 2]);
		fake_file(&f->root, path, i < 2 ? "nop\n" : "0\n");
	}
	f->request.options = (struct capture_words){ option, 1 };
	f->request.functions = (struct capture_functions){
		.tracer = "function",
		.only = { glob, 1 },
	};
}

/* They are global before Linux 6.19. */
static void options_are_set_while_nobody_uses_them(void **state)
{
	struct plan other = { 0 };
	struct fixture *f = *state;

	setup_options(f, "6.18.7-rt\n");
	assert_int_equal(functions_check(&f->env, &f->request, &f->err), 0);
	fake_file(&f->root, "instances/theirs/current_tracer", "function_graph\n");
	assert_int_equal(functions_check(&f->env, &f->request, &f->err), 0);
	fake_file(&f->root, "instances/theirs/current_tracer", "function\n");
	assert_int_equal(functions_check(&f->env, &f->request, &f->err), -EBUSY);
	assert_string_equal(f->err.message,
			    "the tracer 'function' is already on in the instance theirs");
	assert_hint(f, "leave out -O");
	/* Others' options do not matter to a recording without any, until they are set. */
	f->request.options = WORDS("noirq-info");
	assert_int_equal(CHECK(.tracer = "function", .only = WORDS("vfs_*")), 0);
	f->request.options = WORDS("func-no-repeats");
	fake_file(&f->root, "instances/theirs/current_tracer", "nop\n");
	fake_file(&f->root, "current_tracer", "function\n");
	assert_int_equal(CHECK(.tracer = "function", .only = WORDS("vfs_*")), -EBUSY);
	assert_non_null(strstr(f->err.message, "the top-level buffer"));
	fake_file(&f->root, "current_tracer", "nop\n");
	/* Both pass the check. The options and the tracer are one slice. */
	assert_int_equal(CHECK(.tracer = "function", .only = WORDS("vfs_*")), 0);
	assert_int_equal(apply_two(f, 4, &other), -EBUSY);
	assert_non_null(strstr(f->err.message, "traced-1-unit"));
	assert_string_equal(fake_text(&f->root, "options/func-no-repeats"), "0");
	assert_string_equal(fake_text(&f->root, "instances/traced-1-unit/options/func-no-repeats"),
			    "1");
	assert_string_equal(fake_text(&f->root, "instances/traced-1-other/options/func-no-repeats"),
			    "0\n");
}

/* A recording that sets no option has those of the one that does, and loses them with its end. */
static void options_of_others_are_not_recorded_with(void **state)
{
	struct journal j = { .fd = -EBADF };
	struct fixture *f = *state;

	setup_options(f, "6.18.7\n");
	fake_dir(&f->root, "state");
	journal_create(&j, fake_path(&f->root, "state"), "traced-1-unit", NULL);
	f->request.options = (struct capture_words){ 0 };
	fake_file(&f->root, "instances/theirs/current_tracer", "function\n");
	fake_file(&f->root, "options/func_stack_trace", "1\n");
	functions_plan(&f->plan, &f->env, &f->request, "traced-1-unit");
	assert_int_equal(plan_apply(&f->plan, f->env.tracefs, &j, &f->err), -EBUSY);
	assert_non_null(strstr(f->err.message, "set the option 'func_stack_trace'"));
	assert_hint(f, "wait for its end");
	plan_deinit(&f->plan);
	/* An administrator may have set it for everybody. */
	fake_file(&f->root, "instances/theirs/current_tracer", "nop\n");
	functions_plan(&f->plan, &f->env, &f->request, "traced-1-unit");
	assert_int_equal(plan_apply(&f->plan, f->env.tracefs, &j, &f->err), 0);
	assert_string_equal(fake_text(&f->root, "instances/traced-1-unit/current_tracer"),
			    "function");
	journal_drop(&j);
}

static void options_of_an_instance_are_its_own(void **state)
{
	struct plan other = { 0 };
	struct fixture *f = *state;

	setup_options(f, "6.19.0\n");
	fake_file(&f->root, "instances/theirs/current_tracer", "function\n");
	assert_int_equal(functions_check(&f->env, &f->request, &f->err), 0);
	assert_int_equal(apply_two(f, 9, &other), 0);
	assert_int_equal(step_of(f, "options/func-no-repeats")->kind, PLAN_WRITE);
	assert_string_equal(fake_text(&f->root, "instances/traced-1-other/options/func-no-repeats"),
			    "1");
	assert_string_equal(fake_text(&f->root, "options/func-no-repeats"), "0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(known_names_are_accepted, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown_names_get_the_nearest, setup, teardown),
		cmocka_unit_test_setup_teardown(requests_that_record_nothing_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_the_kernel_lacks_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(stacks_of_everything_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(roots_in_use_are_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(the_plan_of_an_instance, setup, teardown),
		cmocka_unit_test_setup_teardown(a_function_that_turns_on_is_planned_alone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(events_that_functions_enable_are_found, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_enabled_event_is_put_back, setup, teardown),
		cmocka_unit_test_setup_teardown(the_plan_of_the_top_level_is_undone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_option_of_another_tracer_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_top_level_is_taken_only_if_it_is_free, setup,
						teardown),
		cmocka_unit_test_setup_teardown(latencies_need_no_functions, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_settings_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(settings_of_latencies_are_restored, setup,
						teardown),
		cmocka_unit_test_setup_teardown(hwlat_takes_its_threshold_last, setup, teardown),
		cmocka_unit_test_setup_teardown(roots_are_free_when_they_are_set, setup, teardown),
		cmocka_unit_test_setup_teardown(settings_are_free_when_they_are_set, setup,
						teardown),
		cmocka_unit_test_setup_teardown(options_are_set_while_nobody_uses_them, setup,
						teardown),
		cmocka_unit_test_setup_teardown(options_of_others_are_not_recorded_with, setup,
						teardown),
		cmocka_unit_test_setup_teardown(options_of_an_instance_are_its_own, setup,
						teardown),
		cmocka_unit_test(settings_in_the_words_that_set_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
