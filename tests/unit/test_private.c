/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings of private daemons are found by their journals and processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_root.h"
#include "private.h"

static void only_private_daemons_that_live(void **state _unused_)
{
	static const char private[] = "/b/traced\0--private\0--fd\0007", listens[] = "/b/traced";
	static const char command[] = "tracectl\0record\0-t\0001s";
	struct private_recordings found;
	char dir[128], proc[128];
	struct fake_root root;

	fake_root_init(&root);
	snprintf(dir, sizeof(dir), "%s/run", root.path);
	snprintf(proc, sizeof(proc), "%s/proc", root.path);
	assert_int_equal(private_recordings_find(dir, proc, &found), 0);
	assert_int_equal(found.count, 0);
	fake_data(&root, "proc/42/cmdline", private, sizeof(private));
	fake_file(&root, "proc/42/status", "Name:\ttraced\nPPid:\t7\n");
	fake_data(&root, "proc/7/cmdline", command, sizeof(command));
	fake_data(&root, "proc/43/cmdline", listens, sizeof(listens));
	fake_file(&root, "run/traced-42-a-b.journal", "");
	fake_file(&root, "run/traced-43-listens.journal", "");
	fake_file(&root, "run/traced-44-dead.journal", "");
	fake_file(&root, "run/traced-42-other", "");
	fake_file(&root, "run/marks.page", "");
	assert_int_equal(private_recordings_find(dir, proc, &found), 0);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.items[0].instance, "traced-42-a-b");
	assert_string_equal(private_recording_name(&found.items[0]), "a-b");
	assert_int_equal(found.items[0].daemon, 42);
	assert_string_equal(found.items[0].command, "tracectl record -t 1s");
	private_recordings_deinit(&found);
	fake_root_deinit(&root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_private_daemons_that_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
