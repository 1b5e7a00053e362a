/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signals that end tracectl while an output has no final name yet. */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/io.h"
#include "child.h"
#include "lacking_fs.h"
#include "output/name.h"
#include "own_folder.h"

static void assert_killed(pid_t pid, int sig)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), sig);
}

/* A name that is given at once simulates a filesystem without O_TMPFILE. */
static void a_fatal_signal_removes_an_incomplete_output(void **state _unused_)
{
	static const enum output_kind kinds[] = { OUTPUT_FILE, OUTPUT_PART, OUTPUT_DIRECTORY };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			struct output_name n;

			fs_lacks = FS_LACKS_TMPFILE;
			if (output_name_open(&n, "out.json", kinds[i], NULL) < 0 ||
			    own_folder_count() != 1)
				_exit(1);
			raise(SIGTERM);
			_exit(2);
		}
		assert_killed(pid, SIGTERM);
		assert_int_equal(own_folder_count(), 0);
	}
}

/* Writes a file whose commit gets a signal between its two names. */
_Noreturn static void commit_with_signal(bool taken)
{
	struct output_name n;

	if (output_name_open(&n, "out.json", OUTPUT_FILE, NULL) < 0 ||
	    write_full(n.fd, "{}", 2) < 0)
		_exit(1);
	if (taken && mkdir("out.json", 0755) < 0)
		_exit(1);
	fs_signal_after_link = SIGTERM;
	output_name_commit(&n, NULL);
	_exit(2);
}

static void a_fatal_signal_waits_for_the_last_name(void **state _unused_)
{
	for (int taken = 0; taken < 2; taken++) {
		struct stat st;
		glob_t kept;
		pid_t pid;

		if (taken)
			assert_int_equal(unlink("out.json"), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			commit_with_signal(taken);
		assert_killed(pid, SIGTERM);
		if (taken)
			assert_int_equal(rmdir("out.json"), 0);
		assert_int_equal(own_folder_count(), 1);
		assert_int_equal(glob("out.json*", 0, NULL, &kept), 0);
		assert_int_equal(stat(*kept.gl_pathv, &st), 0);
		assert_int_equal(st.st_size, 2);
		globfree(&kept);
	}
}

/* The signals that the terminal sends to both, while the command waits for its start. */
static void a_held_command_leaves_our_output_alone(void **state _unused_)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		char *const argv[] = { (char *)"true", NULL };
		_cleanup_output_name_ struct output_name n = OUTPUT_NAME_INIT;
		struct child c = CHILD_INIT;
		sigset_t old;

		assert_int_equal(output_name_open(&n, "out.json", OUTPUT_PART, NULL), 0);
		output_signals_block(&old);
		assert_int_equal(child_hold(&c, argv, false, NULL), 0);
		assert_int_equal(kill(c.pid, signals[i]), 0);
		/* Its end is closed once it is dead. */
		assert_killed(c.pid, signals[i]);
		assert_int_equal(child_release(&c, NULL), -EPIPE);
		c.pid = 0;
		child_deinit(&c);
		sigprocmask(SIG_SETMASK, &old, NULL);
		assert_int_equal(access("out.json.part", F_OK), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, own_folder_setup, own_folder_teardown)
		T(a_fatal_signal_removes_an_incomplete_output),
		T(a_fatal_signal_waits_for_the_last_name),
		T(a_held_command_leaves_our_output_alone),
	};

	/* nohup ignores it, and children inherit that. */
	signal(SIGHUP, SIG_DFL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
