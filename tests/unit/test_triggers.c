/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Triggers in tracectl: names of snapshots, which are kept, which events are needed, and hooks. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/io.h"
#include "own_folder.h"
#include "trigger/trigger.h"
#include "trigger/trigger_files.h"
#include "trigger/trigger_hook.h"

#define AT UINT64_C(1795821301123000000) /* 2026-11-27 23:15:01.123 UTC */

static void a_name_says_what_and_when(void **state _unused_)
{
	static const struct {
		const char *condition, *name;
	} table[] = {
		{ "sched.delay > 5ms", "f-20261127T231501.123Z-sched.delay.json" },
		{ "lost > 0", "f-20261127T231501.123Z-lost.json" },
		{ "event sched:sched_switch", "f-20261127T231501.123Z-event-sched_switch.json" },
		{ "mark \"../a b\" > 1s", "f-20261127T231501.123Z-mark-.._a_b.json" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_buf_ struct buf name = BUF_INIT;
		struct watch_condition c;

		assert_int_equal(watch_condition_parse(table[i].condition, &c, NULL), 0);
		trigger_file_name(&name, "f", AT, &c, ".json");
		assert_string_equal(buf_string(&name), table[i].name);
		watch_condition_deinit(&c);
	}
}

static void put_file(const char *name, size_t len)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	close(fd);
}

static bool is_there(const char *name)
{
	return access(name, F_OK) == 0;
}

/* Files of other names are not ours. */
static const char *const others[] = {
	"f.log",
	"f-x.json",
	"f-20261127T231501.123Z.json",
	"f-20261127T231501.123Z-lost.txt",
	"f-20261127T231501.123Y-lost.json",
	"f-2026112AT231501.123Z-lost.json",
	"ff-20261127T231501.123Z-lost.json",
	"g-20261127T231501.123Z-lost.json",
};

static void the_newest_are_kept(void **state _unused_)
{
	static const char newest[] = "f-20261127T231501.005Z-lost.json";
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		put_file(others[i], 100);
	assert_int_equal(mkdir("f-20261127T231500.123Z-lost.json", 0700), 0);
	for (unsigned i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "f-20261127T231501.%03uZ-lost.json", i);
		put_file(name, 100);
	}
	assert_int_equal(trigger_files_keep(".", "f", ".json", newest, 0, 0), 0);
	assert_int_equal(trigger_files_keep(".", "f", ".json", newest, 6, 600), 0);
	assert_int_equal(trigger_files_keep(".", "f", ".json", newest, 4, 0), 2);
	assert_false(is_there("f-20261127T231501.001Z-lost.json"));
	assert_true(is_there("f-20261127T231501.002Z-lost.json"));
	assert_int_equal(trigger_files_keep(".", "f", ".json", newest, 4, 399), 1);
	assert_false(is_there("f-20261127T231501.002Z-lost.json"));
	/* Even if it is too large alone. */
	assert_int_equal(trigger_files_keep(".", "f", ".json", newest, 4, 1), 2);
	assert_true(is_there(newest));
	/* The clock was set back: of two, the one whose name has the earlier time is the newest. */
	put_file("f-20251127T231501.000Z-lost.json", 100);
	assert_int_equal(
		trigger_files_keep(".", "f", ".json", "f-20251127T231501.000Z-lost.json", 1, 0), 1);
	assert_true(is_there("f-20251127T231501.000Z-lost.json"));
	assert_false(is_there(newest));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_true(is_there(others[i]));
	assert_true(is_there("f-20261127T231500.123Z-lost.json"));
	assert_int_equal(trigger_files_keep("missing", "f", ".json", newest, 1, 1), -ENOENT);
}

/* *ret_count: of the second session's events; or the error. */
static int init_for(const char *const *conditions, size_t count, bool ring, size_t *ret_count)
{
	_cleanup_free_ const char **items = calloc(count, sizeof(*items));
	struct options o = { .ring = ring, .on = { .items = items, .count = count } };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_triggers_ struct triggers t = { 0 };
	int r;

	assert_non_null(items);
	memcpy(items, conditions, count * sizeof(*items));
	r = triggers_init(&t, &o, &err);
	*ret_count = t.spec_count;
	if (r < 0)
		assert_non_null(err.message);
	return r;
}
#define INIT(ring, ret, ...)                                                                       \
	init_for((const char *const[]){ __VA_ARGS__ },                                             \
		 sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), ring, ret)

static void conditions_share_events(void **state _unused_)
{
	const char *all[WATCH_CONDITIONS_MAX + 1];
	size_t count;

	assert_int_equal(INIT(true, &count, "lost > 0"), 0);
	assert_int_equal(count, 0);
	assert_int_equal(INIT(true, &count, "sched.delay > 1ms", "sched.delay > 2ms", "mark x > 1s",
			      "event sched:sched_switch", "event a:b if c == 1"),
			 0);
	assert_int_equal(count, 6);
	/* An event has one filter. */
	assert_int_equal(INIT(true, &count, "sched.delay > 1ms", "event sched:sched_switch if a"),
			 -EINVAL);
	assert_int_equal(INIT(true, &count, "event a:b if c", "event a:b"), -EINVAL);
	assert_int_equal(INIT(true, &count, "event a:b if c", "event a:b if d"), -EINVAL);
	assert_int_equal(INIT(false, &count, "lost > 0"), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		all[i] = "lost > 0";
	assert_int_equal(init_for(all, ARRAY_SIZE(all) - 1, true, &count), 0);
	assert_int_equal(init_for(all, ARRAY_SIZE(all), true, &count), -EINVAL);
}

static void put_program(const char *name, mode_t mode)
{
	put_file(name, 1);
	assert_int_equal(chmod(name, mode), 0);
}

static void a_hook_is_in_its_folder(void **state _unused_)
{
	char folder[PATH_MAX], wanted[PATH_MAX + 16];
	_cleanup_free_ char *path = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_non_null(getcwd(folder, sizeof(folder)));
	assert_int_equal(chmod(".", 0755), 0);
	put_program("good", 0755);
	put_program("open", 0777);
	put_program("group", 0775);
	put_program("text", 0644);
	assert_int_equal(mkdir("folder", 0755), 0);
	assert_int_equal(trigger_hook_find(folder, "good", &path, &err), 0);
	snprintf(wanted, sizeof(wanted), "%s/good", folder);
	assert_string_equal(path, wanted);
	assert_int_equal(trigger_hook_find(folder, "open", &path, &err), -EPERM);
	assert_int_equal(trigger_hook_find(folder, "group", &path, &err), -EPERM);
	assert_int_equal(trigger_hook_find(folder, "text", &path, &err), -EACCES);
	assert_int_equal(trigger_hook_find(folder, "folder", &path, &err), -EACCES);
	assert_int_equal(trigger_hook_find(folder, "missing", &path, &err), -ENOENT);
	assert_int_equal(trigger_hook_find(folder, "", &path, &err), -EINVAL);
	assert_int_equal(trigger_hook_find(folder, "..", &path, &err), -EINVAL);
	assert_int_equal(trigger_hook_find(folder, "folder/x", &path, &err), -EINVAL);
	assert_int_equal(trigger_hook_find("", "good", &path, &err), -EPERM);
	assert_int_equal(chmod(".", 0777), 0);
	assert_int_equal(trigger_hook_find(folder, "good", &path, &err), -EPERM);
}

/* tracectl ignores SIGPIPE and SIGXFSZ; the hook does not. */
static void a_hook_has_the_usual_signals(void **state _unused_)
{
	static const char script[] = "#!/bin/sh\ngrep ^SigIgn: /proc/self/status >signals\n";
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	struct trigger_hook hook = { 0 };
	_cleanup_buf_ struct buf text = BUF_INIT;
	unsigned long long ignored;
	int fd = open("hook", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, script, strlen(script)), strlen(script));
	close(fd);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(trigger_hook_start(&hook, "./hook", "x", "s", "c"), 0);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	while (!trigger_hook_reap(&hook))
		nanosleep(&pause, NULL);
	assert_int_equal(read_file_at(AT_FDCWD, "signals", 1000, &text), 0);
	assert_int_equal(sscanf(buf_string(&text), "SigIgn: %llx", &ignored), 1);
	assert_int_equal(ignored & (1ULL << (SIGPIPE - 1) | 1ULL << (SIGXFSZ - 1)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_says_what_and_when),
		cmocka_unit_test_setup_teardown(the_newest_are_kept, own_folder_setup,
						own_folder_teardown),
		cmocka_unit_test(conditions_share_events),
		cmocka_unit_test_setup_teardown(a_hook_is_in_its_folder, own_folder_setup,
						own_folder_teardown),
		cmocka_unit_test_setup_teardown(a_hook_has_the_usual_signals, own_folder_setup,
						own_folder_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
