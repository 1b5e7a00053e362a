/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Probes: what is written for what people type, and why it is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/capture/plan/probes.h"
#include "daemon/capture/tracefs/events.h"
#include "fake_root.h"

#define GROUP "traced_0123abcd"

static struct capture_request request_of(const char *const *probe, bool user)
{
	const struct capture_words words = { .items = probe, .count = 1 };
	struct capture_request r = { .name = "unit" };

	*(user ? &r.uprobes : &r.kprobes) = words;
	return r;
}

static void a_definition_becomes_a_line(void **state _unused_)
{
	static const struct {
		const char *text;
		bool user;
		const char *line, *undo;
	} table[] = {
		{ "p:open do_sys_openat2 name=+0(%si):string", false,
		  "p:" GROUP "/open do_sys_openat2 name=+0(%si):string\n", "-:" GROUP "/open\n" },
		{ "  r:back do_sys_openat2 $retval", false,
		  "r:" GROUP "/back do_sys_openat2 $retval\n", "-:" GROUP "/back\n" },
		{ "r64:back  vfs_read", false, "r64:" GROUP "/back vfs_read\n", NULL },
		{ "vfs_read", false, "p:" GROUP "/vfs_read vfs_read\n", NULL },
		{ "p vfs_read+4 %ax", false, "p:" GROUP "/vfs_read vfs_read+4 %ax\n", NULL },
		{ "r ext4:ext4_sync.isra.0", false,
		  "r:" GROUP "/ext4_sync_isra_0__return ext4:ext4_sync.isra.0\n",
		  "-:" GROUP "/ext4_sync_isra_0__return\n" },
		{ "random_walk $arg1", false, "p:" GROUP "/random_walk random_walk $arg1\n", NULL },
		{ "p:u /bin/bash:0x1234 %ax", true, "p:" GROUP "/u /bin/bash:0x1234 %ax\n", NULL },
		{ "/usr/lib/a.so.6:0x10", true, "p:" GROUP "/a_so_6_0x10 /usr/lib/a.so.6:0x10\n",
		  NULL },
		{ "r /opt/7z:0x10", true, "r:" GROUP "/_7z_0x10__return /opt/7z:0x10\n", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct capture_request r = request_of(&table[i].text, table[i].user);
		struct probe_list list = { 0 };
		struct plan plan = { 0 };

		assert_int_equal(probes_check(&r, NULL), 0);
		assert_int_equal(probes_plan(&plan, &r, GROUP, &list, NULL), 0);
		assert_int_equal(plan.count, 1);
		assert_string_equal(plan.steps[0].file,
				    table[i].user ? "uprobe_events" : "kprobe_events");
		assert_string_equal(plan.steps[0].value, table[i].line);
		if (table[i].undo)
			assert_string_equal(plan.steps[0].old, table[i].undo);
		assert_int_equal(list.count, 1);
		assert_memory_equal(list.specs[0].glob, GROUP ":", PROBE_GROUP_LEN + 1);
		assert_memory_equal(list.specs[0].glob + PROBE_GROUP_LEN + 1,
				    plan.steps[0].old + strlen("-:" GROUP "/"),
				    strlen(list.specs[0].glob) - PROBE_GROUP_LEN - 1);
		plan_deinit(&plan);
		probe_list_deinit(&list);
	}
}

static void a_wrong_one_is_explained(void **state _unused_)
{
	static const struct {
		const char *text;
		bool user;
		const char *says, *hint;
	} table[] = {
		{ "", false, "no place", "--kprobe" },
		{ "p:open", false, "no place", "--kprobe" },
		{ "p:mine/open vfs_open", false, "names a group", "--kprobe" },
		{ "p: vfs_open", false, "no name", "--kprobe" },
		{ "p:1st vfs_open", false, "begins with a letter", "--kprobe" },
		{ "p:a-b vfs_open", false, "letters, digits and _", "--kprobe" },
		{ "p:a23456789012345678901234567890123456789012345678 f", false, "too long a name",
		  "--kprobe" },
		{ "r1234567890123:x f", false, "too many digits", "--kprobe" },
		{ "p:x f\n-:other", false, "character", "--kprobe" },
		{ "p:x f # note", false, "character", "--kprobe" },
		{ "p:x bash:0x10", true, "the whole path", "--uprobe" },
		{ "p:x /bin/bash", true, "no offset", "readelf" },
		{ "p:x /bin/bash:main", true, "no offset", "readelf" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct capture_request r = request_of(&table[i].text, table[i].user);
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(probes_check(&r, &err), -EINVAL);
		if (!strstr(err.message, table[i].says) || !strstr(err.hint, table[i].hint))
			fail_msg("'%s': %s (%s)", table[i].text, err.message, err.hint);
	}
}

static void names_are_recognized(void **state _unused_)
{
	static const char *const probes[] = { "vfs_read", "r:back vfs_read", "p vfs_read+8" };
	struct capture_request r = { .kprobes = { probes, ARRAY_SIZE(probes) } };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct probe_list list = { 0 };
	struct plan plan = { 0 };

	assert_int_equal(probes_plan(&plan, &r, GROUP, &list, &err), -EINVAL);
	assert_non_null(strstr(err.message, "two probes are called 'vfs_read'"));
	assert_non_null(strstr(err.hint, "vfs_read+8"));
	plan_deinit(&plan);
	probe_list_deinit(&list);
}

static void filters_are_of_the_probe_at_their_place(void **state _unused_)
{
	static const char *const probes[] = { "vfs_read", "vfs_write", "vfs_open" };
	static const char *const filters[] = { "", "count > 1" };
	const struct capture_request r = { .kprobes = { probes, ARRAY_SIZE(probes) },
					   .kprobe_filters = { filters, ARRAY_SIZE(filters) },
					   .uprobes = { (const char *const[]){ "/bin/sh:0x10" },
							1 } };
	struct probe_list list = { 0 };
	struct plan plan = { 0 };

	assert_int_equal(probes_plan(&plan, &r, GROUP, &list, NULL), 0);
	assert_int_equal(list.count, 4);
	assert_null(list.specs[0].filter);
	assert_string_equal(list.specs[1].filter, "count > 1");
	assert_null(list.specs[2].filter);
	assert_null(list.specs[3].filter);
	plan_deinit(&plan);
	probe_list_deinit(&list);
}

static void globs_do_not_match_our_probes(void **state _unused_)
{
	assert_true(event_glob_matches(GROUP ":open", GROUP ":open"));
	assert_false(event_glob_matches("*:*", GROUP ":open"));
	assert_false(event_glob_matches("open", GROUP ":open"));
	assert_false(event_glob_matches("traced_*", GROUP ":open"));
	assert_true(event_glob_matches("*:*", "kprobes:open"));
}

static void explain(const char *log, const char *functions, const char *probe, int code,
		    struct error *err)
{
	const struct capture_request r = request_of(&probe, false);
	struct probe_list list = { 0 };
	struct plan plan = { 0 };
	struct fake_root root;
	struct tracefs *fs;

	fake_root_init(&root);
	fake_dir(&root, "events");
	fake_dir(&root, "instances");
	if (functions) {
		fake_file(&root, "kprobe_events", "");
		fake_file(&root, "available_filter_functions", functions);
	}
	fake_file(&root, "error_log", log);
	assert_int_equal(tracefs_open(&fs, root.path, NULL), 0);
	assert_int_equal(probes_plan(&plan, &r, GROUP, &list, NULL), 0);
	plan_explain(&plan.steps[0], fs, code, err);
	plan_deinit(&plan);
	probe_list_deinit(&list);
	tracefs_free(fs);
	fake_root_deinit(&root);
}

static void the_caret_points_at_what_was_typed(void **state _unused_)
{
	static const char log[] = "[  512.1] trace_kprobe: error: Invalid argument name\n"
				  "  Command: p:" GROUP "/open vfs_open %zz\n"
				  "                                       ^\n";
	_cleanup_error_ struct error err = ERROR_INIT;

	explain(log, "vfs_open\n", "p:open vfs_open %zz", -EINVAL, &err);
	assert_string_equal(err.message,
			    "the kernel refuses the probe 'p:open vfs_open %zz': Invalid argument\n"
			    "[  512.1] trace_kprobe: error: Invalid argument name\n"
			    "  Command: p:open vfs_open %zz\n"
			    "                       ^");
}

static void an_older_error_is_left_out(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	explain("[  512.1] trace_kprobe: error: Some\n  Command: p:other/x y\n             ^\n",
		"vfs_open\nvfs_read\n", "p:open vfs_opne", -ENOENT, &err);
	assert_null(strstr(err.message, "Command"));
	assert_non_null(strstr(err.message, "p:open vfs_opne"));
	assert_non_null(strstr(err.hint, "vfs_open"));
}

static void a_kernel_without_probes_is_named(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	explain("", NULL, "vfs_open", -ENOENT, &err);
	assert_non_null(strstr(err.message, "CONFIG_KPROBE_EVENTS"));
	error_deinit(&err);
	explain("", "vfs_open\n", "vfs_open", -EPERM, &err);
	assert_non_null(strstr(err.message, "refuses probes"));
	assert_non_null(strstr(err.hint, "can still be recorded"));
}

static void a_place_without_code_is_named(void **state _unused_)
{
	const struct plan_step s = { .file = (char *)"events/" GROUP "/open/enable" };
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(plan_explain(&s, NULL, -EINVAL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "the probe 'open'"));
	assert_non_null(strstr(err.hint, "instruction"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_definition_becomes_a_line),
		cmocka_unit_test(a_wrong_one_is_explained),
		cmocka_unit_test(names_are_recognized),
		cmocka_unit_test(filters_are_of_the_probe_at_their_place),
		cmocka_unit_test(globs_do_not_match_our_probes),
		cmocka_unit_test(the_caret_points_at_what_was_typed),
		cmocka_unit_test(an_older_error_is_left_out),
		cmocka_unit_test(a_kernel_without_probes_is_named),
		cmocka_unit_test(a_place_without_code_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
