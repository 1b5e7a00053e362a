/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"

static void await(struct child *c)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < 5000 && !child_reap(c); i++)
		nanosleep(&pause, NULL);
	assert_true(c->ended);
}

static void is_held_until_released(void **state _unused_)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"exit 7", NULL };
	_cleanup_child_ struct child c = CHILD_INIT;
	const struct timespec pause = { .tv_nsec = 50000000 };

	assert_int_equal(child_hold(&c, argv, false, NULL), 0);
	assert_true(c.pid > 0);
	nanosleep(&pause, NULL);
	assert_false(child_reap(&c));
	assert_int_equal(child_release(&c, NULL), 0);
	await(&c);
	assert_int_equal(WEXITSTATUS(c.status), 7);
}

/* The lookup is done before the release; a folder in PATH is no program. */
static void is_found_in_path(void **state _unused_)
{
	char *const argv[] = { (char *)"child-of-path", NULL };
	char first[] = "/tmp/test-child.XXXXXX", second[] = "/tmp/test-child.XXXXXX";
	_cleanup_child_ struct child c = CHILD_INIT;
	char path[128], folder[64], program[64];
	const char *before = getenv("PATH");

	assert_non_null(mkdtemp(first));
	assert_non_null(mkdtemp(second));
	snprintf(folder, sizeof(folder), "%s/child-of-path", first);
	snprintf(program, sizeof(program), "%s/child-of-path", second);
	assert_int_equal(mkdir(folder, 0755), 0);
	assert_int_equal(symlink("/bin/false", program), 0);
	snprintf(path, sizeof(path), "%s:%s", first, second);
	setenv("PATH", path, true);
	assert_int_equal(child_hold(&c, argv, false, NULL), 0);
	setenv("PATH", before, true);
	assert_int_equal(child_release(&c, NULL), 0);
	await(&c);
	assert_int_equal(WEXITSTATUS(c.status), 1);
	assert_int_equal(child_check_exec(&c, NULL), 0);
	unlink(program);
	rmdir(folder);
	rmdir(first);
	rmdir(second);
}

/* A program may end with the status that stands for a failed exec. */
static void ends_with_127(void **state _unused_)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"exit 127", NULL };
	_cleanup_child_ struct child c = CHILD_INIT;

	assert_int_equal(child_hold(&c, argv, false, NULL), 0);
	assert_int_equal(child_release(&c, NULL), 0);
	await(&c);
	assert_int_equal(WEXITSTATUS(c.status), 127);
	assert_int_equal(child_check_exec(&c, NULL), 0);
}

static void goes_away_if_never_released(void **state _unused_)
{
	char *const argv[] = { (char *)"sleep", (char *)"1000", NULL };
	struct child c = CHILD_INIT;
	pid_t pid;

	assert_int_equal(child_hold(&c, argv, false, NULL), 0);
	pid = c.pid;
	child_deinit(&c);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

/* The daemon let it go, and the reply that says so did not arrive. */
static void is_left_alone_if_others_released_it(void **state _unused_)
{
	char *const argv[] = { (char *)"sleep", (char *)"1000", NULL };
	struct child c = CHILD_INIT;
	struct timespec began, now;
	pid_t pid;

	assert_int_equal(child_hold(&c, argv, false, NULL), 0);
	if (c.end_fd < 0)
		skip();
	pid = c.pid;
	assert_int_equal(write(c.go_fd, "", 1), 1);
	clock_gettime(CLOCK_MONOTONIC, &began);
	child_deinit(&c);
	clock_gettime(CLOCK_MONOTONIC, &now);
	assert_true(now.tv_sec - began.tv_sec < 60);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void an_absent_program_is_found_before_the_fork(void **state _unused_)
{
	char *const absent[] = { (char *)"no-such-program-here", NULL };
	char *const path[] = { (char *)"/etc/passwd", NULL };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_child_ struct child c = CHILD_INIT;

	assert_int_equal(child_hold(&c, absent, false, &err), -ENOENT);
	assert_non_null(strstr(err.message, "no-such-program-here"));
	assert_non_null(err.hint);
	assert_int_equal(child_hold(&c, path, false, &err), -EACCES);
	assert_int_equal(c.pid, 0);
}

static void a_failing_exec_is_reported(void **state _unused_)
{
	char path[] = "/tmp/test-child.XXXXXX";
	char *const argv[] = { path, NULL };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_child_ struct child c = CHILD_INIT;
	int fd = mkstemp(path);

	/* The interpreter is missing; only the kernel detects that. */
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "#!/no/such/interpreter\n", 23), 23);
	assert_int_equal(fchmod(fd, 0700), 0);
	close(fd);
	assert_int_equal(child_hold(&c, argv, false, &err), 0);
	assert_int_equal(child_release(&c, &err), 0);
	await(&c);
	assert_int_equal(child_check_exec(&c, &err), -ENOENT);
	assert_non_null(strstr(err.message, path));
	unlink(path);
}

static void runs_with_signals_as_usual(void **state _unused_)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"kill -INT $$; exit 3", NULL };
	_cleanup_child_ struct child c = CHILD_INIT;
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, &old);
	assert_int_equal(child_hold(&c, argv, false, NULL), 0);
	assert_int_equal(child_release(&c, NULL), 0);
	await(&c);
	sigprocmask(SIG_SETMASK, &old, NULL);
	assert_true(WIFSIGNALED(c.status));
	assert_int_equal(WTERMSIG(c.status), SIGINT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_held_until_released),
		cmocka_unit_test(is_found_in_path),
		cmocka_unit_test(ends_with_127),
		cmocka_unit_test(goes_away_if_never_released),
		cmocka_unit_test(is_left_alone_if_others_released_it),
		cmocka_unit_test(an_absent_program_is_found_before_the_fork),
		cmocka_unit_test(a_failing_exec_is_reported),
		cmocka_unit_test(runs_with_signals_as_usual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
