/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A helper that the daemon forks, and kills at any moment of its start. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/service/child.h"

#define STARTS 400
#define STEP_NS 2000

static void on_done(void *userdata _unused_, Traced__Control__ExportResult *result _unused_)
{
	fail();
}

/* Orphans become our children. Whether none is left after at most five seconds. */
static bool all_have_ended(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < 5000; i++) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid < 0)
			return true;
		if (pid == 0)
			nanosleep(&pause, NULL);
	}
	return false;
}

static void nothing_is_left_of_a_killed_child(void **state _unused_)
{
	static const char *const argv[] = { "--wait", NULL };
	const struct child_spec spec = { .what = "exporter", .argv = argv };
	_cleanup_(loop_freep) struct loop *loop = NULL;

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(loop_new(&loop), 0);
	for (int i = 0; i < STARTS; i++) {
		const struct timespec age = { .tv_nsec = (long)i * STEP_NS };
		_cleanup_error_ struct error err = ERROR_INIT;
		struct child *c;

		assert_int_equal(child_spawn(&c, loop, &spec, on_done, NULL, &err), 0);
		nanosleep(&age, NULL);
		child_free(c);
	}
	assert_true(all_have_ended());
}

int main(int argc, char **argv _unused_)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_left_of_a_killed_child),
	};
	sigset_t set;

	/* The child's exec has come this far. */
	if (argc > 1)
		for (;;)
			pause();
	child_reserve_descriptors();
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
