/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Probes: what is written for what people type, and why it is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/caret.h"
#include "daemon/capture/plan/probes.h"
#include "daemon/capture/tracefs/events.h"
#include "fake_root.h"

#define GROUP "traced_0123abcd"

#define K PROBE_KPROBE
#define U PROBE_UPROBE
#define F PROBE_FPROBE
#define T PROBE_TPROBE
#define E PROBE_EPROBE

static struct capture_request request_of(const struct capture_probe *probe)
{
	return (struct capture_request){ .name = "unit", .probes = probe, .probe_count = 1 };
}

static void open_events(struct fake_root *root, struct tracefs **fs)
{
	fake_root_init(root);
	fake_dir(root, "events");
	fake_dir(root, "instances");
	fake_file(root, "available_events", "sched:sched_switch\nsyscalls:sys_enter_openat\n");
	assert_int_equal(tracefs_open(fs, root->path, NULL), 0);
}

static void a_definition_becomes_a_line(void **state _unused_)
{
	static const struct {
		const char *text;
		enum probe_kind_id kind;
		const char *line, *undo;
	} table[] = {
		{ "p:open do_sys_openat2 name=+0(%si):string", K,
		  "p:" GROUP "/open do_sys_openat2 name=+0(%si):string\n", "-:" GROUP "/open\n" },
		{ "  r:back do_sys_openat2 $retval", K, "r:" GROUP "/back do_sys_openat2 $retval\n",
		  "-:" GROUP "/back\n" },
		{ "r64:back  vfs_read", K, "r64:" GROUP "/back vfs_read\n", NULL },
		{ "vfs_read", K, "p:" GROUP "/vfs_read vfs_read\n", NULL },
		{ "p vfs_read+4 %ax", K, "p:" GROUP "/vfs_read vfs_read+4 %ax\n", NULL },
		{ "r ext4:ext4_sync.isra.0", K,
		  "r:" GROUP "/ext4_sync_isra_0__return ext4:ext4_sync.isra.0\n",
		  "-:" GROUP "/ext4_sync_isra_0__return\n" },
		{ "random_walk $arg1", K, "p:" GROUP "/random_walk random_walk $arg1\n", NULL },
		{ "p:u /bin/bash:0x1234 %ax", U, "p:" GROUP "/u /bin/bash:0x1234 %ax\n", NULL },
		{ "/usr/lib/a.so.6:0x10", U, "p:" GROUP "/a_so_6_0x10 /usr/lib/a.so.6:0x10\n",
		  NULL },
		{ "r /opt/7z:0x10", U, "r:" GROUP "/_7z_0x10__return /opt/7z:0x10\n", NULL },
		{ "vfs_read%return ret=$retval", F,
		  "f:" GROUP "/vfs_read__return vfs_read%return ret=$retval\n",
		  "-:" GROUP "/vfs_read__return\n" },
		{ "f8:back vfs_read%return", F, "f8:" GROUP "/back vfs_read%return\n", NULL },
		{ "f vfs_read $arg*", F, "f:" GROUP "/vfs_read vfs_read $arg*\n", NULL },
		{ "vfs_read%return", K, "p:" GROUP "/vfs_read__return vfs_read%return\n", NULL },
		{ "sched_switch prev->pid", T, "t:" GROUP "/sched_switch sched_switch prev->pid\n",
		  NULL },
		{ "t:x sched_switch", T, "t:" GROUP "/x sched_switch\n", NULL },
		{ "sched:sched_switch n=$next_comm:string", E,
		  "e:" GROUP "/sched_switch sched.sched_switch n=$next_comm:string\n",
		  "-:" GROUP "/sched_switch\n" },
		{ "e:o syscalls/sys_enter_openat f=+0($filename):ustring", E,
		  "e:" GROUP "/o syscalls/sys_enter_openat f=+0($filename):ustring\n", NULL },
	};

	struct fake_root root;
	struct tracefs *fs;

	open_events(&root, &fs);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct capture_probe probe = { table[i].kind, table[i].text, NULL };
		const struct capture_request r = request_of(&probe);
		struct probe_list list = { 0 };
		struct plan plan = { 0 };

		assert_int_equal(probes_check(&r, fs, NULL), 0);
		assert_int_equal(probes_plan(&plan, &r, GROUP, &list, NULL), 0);
		assert_int_equal(plan.count, 1);
		assert_string_equal(plan.steps[0].file, probe_kinds[table[i].kind].file);
		assert_ptr_equal(probe_kind_of(plan.steps[0].file, plan.steps[0].value),
				 &probe_kinds[table[i].kind]);
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
	tracefs_free(fs);
	fake_root_deinit(&root);
}

static void an_event_that_is_missing_is_named(void **state _unused_)
{
	static const struct capture_probe probes[] = { { E, "sched.sched_swich", NULL },
						       { E, "e:x sched:*", NULL } };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture_request r = request_of(&probes[0]);
	struct fake_root root;
	struct tracefs *fs;

	open_events(&root, &fs);
	assert_int_equal(probes_check(&r, fs, &err), -ENOENT);
	assert_non_null(strstr(err.message, "'sched:sched_swich'"));
	assert_non_null(strstr(err.hint, "'sched:sched_switch'"));
	error_deinit(&err);
	r = request_of(&probes[1]);
	assert_int_equal(probes_check(&r, fs, &err), -EINVAL);
	tracefs_free(fs);
	fake_root_deinit(&root);
}

/* Linux 6.12 takes a tprobe at a tracepoint that no module has yet. */
static void a_tprobes_tracepoint_exists(void **state _unused_)
{
	static const struct {
		const char *functions, *text, *hint; /* hint NULL: it is taken */
	} table[] = {
		{ "vfs_read\n__traceiter_sched_switch\n__traceiter_mine [dummy]\n",
		  "t:x sched_switch prev->pid", NULL },
		{ "vfs_read\n__traceiter_sched_switch\n__traceiter_mine [dummy]\n", "mine", NULL },
		{ "vfs_read\n__traceiter_sched_switch\n", "sched_switc", "'sched_switch'" },
		{ "vfs_read\n__traceiter_sched_switch\n", "t:x vfs_read", "events --probe" },
		{ "vfs_read\n", "sched_switc", NULL },
		{ NULL, "sched_switc", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct capture_probe probe = { T, table[i].text, NULL };
		const struct capture_request r = request_of(&probe);
		_cleanup_error_ struct error err = ERROR_INIT;
		struct fake_root root;
		struct tracefs *fs;

		open_events(&root, &fs);
		if (table[i].functions)
			fake_file(&root, "available_filter_functions", table[i].functions);
		assert_int_equal(probes_check(&r, fs, &err), table[i].hint ? -ENOENT : 0);
		if (table[i].hint)
			assert_non_null(strstr(err.hint, table[i].hint));
		tracefs_free(fs);
		fake_root_deinit(&root);
	}
}

static void a_wrong_one_is_explained(void **state _unused_)
{
	static const struct {
		const char *text;
		enum probe_kind_id kind;
		const char *says, *hint;
	} table[] = {
		{ "", K, "no place", "--kprobe" },
		{ "p:open", K, "no place", "--kprobe" },
		{ "p:mine/open vfs_open", K, "names a group", "--kprobe" },
		{ "p: vfs_open", K, "no name", "--kprobe" },
		{ "p:1st vfs_open", K, "begins with a letter", "--kprobe" },
		{ "p:a-b vfs_open", K, "letters, digits and _", "--kprobe" },
		{ "p:a23456789012345678901234567890123456789012345678 f", K, "too long a name",
		  "--kprobe" },
		{ "r1234567890123:x f", K, "too many digits", "--kprobe" },
		{ "p:x f\n-:other", K, "character", "--kprobe" },
		{ "p:x f # note", K, "character", "--kprobe" },
		{ "p:x bash:0x10", U, "the whole path", "--uprobe" },
		{ "p:x /bin/bash", U, "no offset", "readelf" },
		{ "p:x /bin/bash:main", U, "no offset", "readelf" },
		{ "f:x/y vfs_open", F, "names a group", "--fprobe" },
		{ "f:x", F, "no place", "--fprobe" },
		{ "t:a-b sched_switch", T, "letters, digits and _", "--tprobe" },
		{ "p:x vfs_read", E, "begins with p:, but --eprobe begins with e:", "--eprobe" },
		{ "e:x sched:sched_switch", K,
		  "begins with e:, but --kprobe begins with p:", "--kprobe" },
		{ "f10:x vfs_read", T, "begins with f10:, but", "--tprobe" },
		{ "e:x sched_switch", E, "needs an event with its system", "--eprobe" },
		{ "e:x sched:sched_switch a=$b\n-:kprobes/mine", E, "character", "--eprobe" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct capture_probe probe = { table[i].kind, table[i].text, NULL };
		const struct capture_request r = request_of(&probe);
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(probes_check(&r, NULL, &err), -EINVAL);
		if (!strstr(err.message, table[i].says) || !strstr(err.hint, table[i].hint))
			fail_msg("'%s': %s (%s)", table[i].text, err.message, err.hint);
	}
}

/* A caret stands below the first character that a name can't have. */
static void wrong_names_have_a_caret(void **state _unused_)
{
	static const struct {
		const char *text;
		enum probe_kind_id kind;
		const char *at;
	} table[] = {
		{ "p:mine/open vfs_open", K, "/open vfs_open" },
		{ "p: vfs_open", K, " vfs_open" },
		{ "r:1st vfs_open", K, "1st vfs_open" },
		{ "p:a\"b\" vfs_open", K, "\"b\" vfs_open" },
		{ "f:\xc3\xa9t\xc3\xa9 vfs_open", F, "\xc3\xa9t\xc3\xa9 vfs_open" },
		{ "p:a234567890123456789012345678901234567890123456789 /bin/sh:0x10", U,
		  "89 /bin/sh:0x10" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct capture_probe probe = { table[i].kind, table[i].text, NULL };
		const struct capture_request r = request_of(&probe);
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf place = BUF_INIT;

		buf_put_caret(&place, table[i].text, strstr(table[i].text, table[i].at));
		assert_int_equal(probes_check(&r, NULL, &err), -EINVAL);
		if (!strstr(err.message, buf_string(&place)))
			fail_msg("%s, not%s", err.message, place.data);
	}
}

static void names_are_recognized(void **state _unused_)
{
	static const struct capture_probe probes[] = { { K, "vfs_read", NULL },
						       { K, "r:back vfs_read", NULL },
						       { F, "f:back vfs_write", NULL },
						       { K, "p vfs_read+8", NULL } };
	const struct capture_request back = { .probes = probes, .probe_count = 3 };
	const struct capture_request r = {
		.probes = (const struct capture_probe[]){ probes[0], probes[3] }, .probe_count = 2
	};
	_cleanup_error_ struct error err = ERROR_INIT;
	struct probe_list list = { 0 };
	struct plan plan = { 0 };

	assert_int_equal(probes_plan(&plan, &r, GROUP, &list, &err), -EINVAL);
	assert_non_null(strstr(err.message, "two probes are called 'vfs_read'"));
	assert_non_null(strstr(err.hint, "vfs_read+8"));
	plan_deinit(&plan);
	probe_list_deinit(&list);
	error_deinit(&err);
	assert_int_equal(probes_plan(&plan, &back, GROUP, &list, &err), -EINVAL);
	assert_non_null(strstr(err.message, "two probes are called 'back'"));
	plan_deinit(&plan);
	probe_list_deinit(&list);
}

static void filters_are_of_their_probe(void **state _unused_)
{
	static const struct capture_probe probes[] = { { K, "vfs_read", NULL },
						       { K, "vfs_write", "count > 1" },
						       { U, "/bin/sh:0x10", NULL } };
	const struct capture_request r = { .probes = probes, .probe_count = ARRAY_SIZE(probes) };
	struct probe_list list = { 0 };
	struct plan plan = { 0 };

	assert_int_equal(probes_plan(&plan, &r, GROUP, &list, NULL), 0);
	assert_int_equal(list.count, 3);
	assert_null(list.specs[0].filter);
	assert_string_equal(list.specs[1].filter, "count > 1");
	assert_null(list.specs[2].filter);
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
	const struct capture_probe kprobe = { K, probe, NULL };
	const struct capture_request r = request_of(&kprobe);
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

static void arguments_need_types(void **state _unused_)
{
	static const char log[] =
		"[  129.9] trace_kprobe: error: BTF is not available or not supported\n"
		"  Command: p:" GROUP "/open vfs_open $arg*\n"
		"                                       ^\n";
	_cleanup_error_ struct error err = ERROR_INIT;

	explain(log, "vfs_open\n", "p:open vfs_open $arg*", -EOPNOTSUPP, &err);
	assert_string_equal(err.hint, "boot a kernel with CONFIG_DEBUG_INFO_BTF");
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

/* readme: of tracefs; NULL: there is no dynamic_events. */
static void refuse(enum probe_kind_id kind, const char *readme, const char *probe,
		   struct error *err)
{
	const struct capture_probe p = { kind, probe, NULL };
	const struct capture_request r = request_of(&p);
	struct probe_list list = { 0 };
	struct plan plan = { 0 };
	struct fake_root root;
	struct tracefs *fs;

	fake_root_init(&root);
	fake_dir(&root, "events");
	fake_dir(&root, "instances");
	fake_file(&root, "README", readme ?: "");
	if (readme)
		fake_file(&root, "dynamic_events", "");
	assert_int_equal(tracefs_open(&fs, root.path, NULL), 0);
	assert_int_equal(probes_plan(&plan, &r, GROUP, &list, NULL), 0);
	plan_explain(&plan.steps[0], fs, -EINVAL, err);
	plan_deinit(&plan);
	probe_list_deinit(&list);
	tracefs_free(fs);
	fake_root_deinit(&root);
}

static void each_kind_is_told_apart_in_the_readme(void **state _unused_)
{
	static const char old[] = "\t           e[:[<group>/][<event>]] <attached-group>\n";
	static const struct {
		enum probe_kind_id kind;
		const char *readme, *probe, *says;
	} table[] = {
		{ E, NULL, "sched:sched_switch", "no eprobes (CONFIG_EPROBE_EVENTS, Linux 5.15)" },
		{ E, "", "sched:sched_switch", "no eprobes" },
		{ E, old, "sched:sched_switch", "refuses the probe 'e:sched_switch sched" },
		{ F, old, "vfs_read", "no fprobes (CONFIG_FPROBE_EVENTS, Linux 6.5)" },
		{ T, old, "sched_switch", "no tprobes" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;

		refuse(table[i].kind, table[i].readme, table[i].probe, &err);
		if (!strstr(err.message, table[i].says))
			fail_msg("'%s': %s", table[i].probe, err.message);
	}
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
		cmocka_unit_test(an_event_that_is_missing_is_named),
		cmocka_unit_test(a_tprobes_tracepoint_exists),
		cmocka_unit_test(a_wrong_one_is_explained),
		cmocka_unit_test(wrong_names_have_a_caret),
		cmocka_unit_test(names_are_recognized),
		cmocka_unit_test(filters_are_of_their_probe),
		cmocka_unit_test(globs_do_not_match_our_probes),
		cmocka_unit_test(the_caret_points_at_what_was_typed),
		cmocka_unit_test(arguments_need_types),
		cmocka_unit_test(an_older_error_is_left_out),
		cmocka_unit_test(a_kernel_without_probes_is_named),
		cmocka_unit_test(each_kind_is_told_apart_in_the_readme),
		cmocka_unit_test(a_place_without_code_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
