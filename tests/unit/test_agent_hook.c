/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* only_if: a program says whether the board may work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/hook.h"
#include "base/io.h"
#include "own_folder.h"

#define MINUTE (60 * NSEC_PER_SEC)
/* The tests' clock stands, except where they move it. */
#define NOW MINUTE

static struct policy board(const char *script)
{
	struct policy policy = { .owner = geteuid(), .interval_ns = 300 * NSEC_PER_SEC };
	_cleanup_free_ char *folder = getcwd(NULL, 0);

	assert_true(asprintf(&policy.only_if, "%s/may", folder) > 0);
	assert_int_equal(replace_file("may", script, strlen(script), 0755, false), 0);
	assert_int_equal(chmod("may", 0755), 0);
	return policy;
}

/* Until the program has ended. */
static void wait_for(struct hook *h, const struct policy *policy, uint64_t now)
{
	for (int i = 0; i < 3000 && h->pid; i++) {
		hook_step(h, policy, now);
		usleep(10000);
	}
	assert_int_equal(h->pid, 0);
}

static bool answers(struct hook *h, const struct policy *policy)
{
	assert_false(hook_allows(h, policy, NOW));
	wait_for(h, policy, NOW);
	return hook_allows(h, policy, NOW);
}

static void says(const char *path, const char *wanted)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read_to_end(fd, 4096, &text) >= 0);
	assert_string_equal(buf_string(&text), wanted);
}

static void without_a_program_work_is_allowed(void **state _unused_)
{
	struct hook h = { .question = "record" };
	struct policy policy = { 0 };

	assert_true(hook_allows(&h, &policy, NOW));
	assert_true(hook_allows(&h, &policy, NOW));
	assert_int_equal(hook_next_ns(&h, 5), 5);
}

static void yes_is_for_one_piece_of_work(void **state _unused_)
{
	_cleanup_policy_ struct policy policy = board("#!/bin/sh\nexit 0\n");
	struct hook h = { .question = "record" };

	assert_true(answers(&h, &policy));
	/* The next one asks again. */
	assert_true(answers(&h, &policy));
	/* An answer that nobody used is no answer an hour later. */
	assert_false(hook_allows(&h, &policy, NOW));
	wait_for(&h, &policy, NOW);
	assert_false(hook_allows(&h, &policy, NOW + 60 * MINUTE));
	assert_int_not_equal(h.pid, 0);
	wait_for(&h, &policy, NOW);
	assert_int_equal(h.denials, 0);
}

static void no_is_asked_again_after_a_minute(void **state _unused_)
{
	_cleanup_policy_ struct policy policy = board("#!/bin/sh\nexit 1\n");
	struct hook h = { .question = "record" };

	assert_false(answers(&h, &policy));
	assert_true(h.said_no);
	assert_int_equal(h.denials, 1);
	assert_false(hook_allows(&h, &policy, NOW + MINUTE - 1));
	assert_int_equal(h.pid, 0);
	assert_int_equal(hook_next_ns(&h, NOW), NOW + MINUTE);
	assert_false(hook_allows(&h, &policy, NOW + MINUTE));
	assert_int_not_equal(h.pid, 0);
	wait_for(&h, &policy, NOW + MINUTE);
	assert_int_equal(h.denials, 2);
}

static void a_signal_means_no(void **state _unused_)
{
	_cleanup_policy_ struct policy policy = board("#!/bin/sh\nkill -9 $$\n");
	struct hook h = { .question = "upload" };

	assert_false(answers(&h, &policy));
	assert_true(h.said_no);
}

static void one_that_hangs_is_ended(void **state _unused_)
{
	_cleanup_policy_ struct policy policy = board("#!/bin/sh\nexec sleep 1000\n");
	struct hook h = { .question = "upload" };
	pid_t pid;

	assert_false(hook_allows(&h, &policy, NOW));
	pid = h.pid;
	hook_step(&h, &policy, NOW + 10 * NSEC_PER_SEC - 1);
	assert_int_equal(h.pid, pid);
	assert_int_equal(kill(pid, 0), 0);
	assert_false(h.is_late);
	hook_step(&h, &policy, NOW + 10 * NSEC_PER_SEC);
	assert_true(h.is_late);
	wait_for(&h, &policy, NOW + 10 * NSEC_PER_SEC);
	assert_true(h.said_no && kill(pid, 0) < 0);
	assert_false(hook_allows(&h, &policy, NOW + 10 * NSEC_PER_SEC));
}

static void nothing_of_it_stays(void **state _unused_)
{
	_cleanup_free_ char *folder = getcwd(NULL, 0), *script = NULL;
	_cleanup_policy_ struct policy policy = { 0 };
	struct hook h = { .question = "upload" };
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_close_ int fd = -EBADF;
	pid_t pid;

	assert_true(asprintf(&script, "#!/bin/sh\nsleep 1000 &\necho $! >%s/pid\n", folder) > 0);
	policy = board(script);
	assert_true(answers(&h, &policy));
	fd = open("pid", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read_to_end(fd, 32, &text) >= 0 && buf_string(&text));
	pid = (pid_t)atoi(text.data);
	assert_true(pid > 0);
	/* Whoever reaps orphans may take a while. */
	for (int i = 0; i < 3000; i++) {
		_cleanup_free_ char *path = NULL;
		_cleanup_buf_ struct buf stat_text = BUF_INIT;
		_cleanup_close_ int stat_fd = -EBADF;

		assert_true(asprintf(&path, "/proc/%d/stat", (int)pid) > 0);
		stat_fd = open(path, O_RDONLY | O_CLOEXEC);
		if (stat_fd < 0 || read_to_end(stat_fd, 4096, &stat_text) < 0 ||
		    strstr(buf_string(&stat_text), ") Z "))
			return;
		usleep(10000);
	}
	fail_msg("what the program started runs on");
}

static void it_is_given_the_question_alone(void **state _unused_)
{
	_cleanup_free_ char *folder = getcwd(NULL, 0), *script = NULL;
	_cleanup_policy_ struct policy policy = { 0 };
	struct hook h = { .question = "record" };

	assert_int_equal(setenv("SECRET", "1", 1), 0);
	/* A descriptor that exec does not close. */
	assert_int_equal(dup2(STDERR_FILENO, 100), 100);
	assert_true(
		asprintf(&script,
			 "#!/bin/sh\n{ echo $# $1 $SECRET.; pwd; grep NoNew /proc/$$/status; "
			 "[ -e /proc/$$/fd/100 ] || echo closed; read x || echo end; } >%s/said\n",
			 folder) > 0);
	policy = board(script);
	assert_true(answers(&h, &policy));
	close(100);
	says("said", "1 record .\n/\nNoNewPrivs:\t1\nclosed\nend\n");
}

static int checked(const struct policy *policy)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r = hook_check(policy->only_if, policy->owner, &err);

	assert_true(r == 0 || err.message);
	return r;
}

static void only_an_administrator_can_change_it(void **state _unused_)
{
	_cleanup_policy_ struct policy policy = board("#!/bin/sh\nexit 0\n");
	struct hook h = { .question = "record" };

	assert_int_equal(checked(&policy), 0);
	policy.owner++;
	assert_int_equal(checked(&policy), -EPERM);
	policy.owner--;
	assert_int_equal(chmod("may", 0775), 0);
	assert_int_equal(checked(&policy), -EPERM);
	/* One that was replaced while the agent ran does not run. */
	assert_false(hook_allows(&h, &policy, NOW));
	assert_int_equal(h.pid, 0);
	assert_true(h.said_no && h.denials == 1 && hook_next_ns(&h, NOW) == NOW + MINUTE);
	assert_int_equal(chmod("may", 0755), 0);
	assert_int_equal(chmod(".", 0777), 0);
	assert_int_equal(checked(&policy), -EPERM);
	assert_int_equal(chmod(".", 0700), 0);
	assert_int_equal(checked(&policy), 0);
	assert_int_equal(rename("may", "real"), 0);
	assert_int_equal(checked(&policy), -ENOENT);
	assert_int_equal(symlink("real", "may"), 0);
	assert_int_equal(checked(&policy), -ELOOP);
	assert_int_equal(unlink("may"), 0);
	assert_int_equal(mkdir("may", 0755), 0);
	assert_int_equal(checked(&policy), -EPERM);
	assert_int_equal(rmdir("may"), 0);
	assert_int_equal(rename("real", "may"), 0);
	assert_int_equal(chmod("may", 0644), 0);
	assert_int_equal(checked(&policy), -EACCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_program_work_is_allowed),
#define FOLDER_TEST(f) cmocka_unit_test_setup_teardown(f, own_folder_setup, own_folder_teardown)
		FOLDER_TEST(yes_is_for_one_piece_of_work),
		FOLDER_TEST(no_is_asked_again_after_a_minute),
		FOLDER_TEST(a_signal_means_no),
		FOLDER_TEST(one_that_hangs_is_ended),
		FOLDER_TEST(nothing_of_it_stays),
		FOLDER_TEST(it_is_given_the_question_alone),
		FOLDER_TEST(only_an_administrator_can_change_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
