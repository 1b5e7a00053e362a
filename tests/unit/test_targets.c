/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes and their threads, on folders in place of procfs and of an instance. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/capture/plan/targets.h"
#include "fake_root.h"

/* Process 10 has the threads 10 and 12. */
struct fixture {
	struct fake_root root;
	struct capture_report report;
	int dir;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_root_init(&f->root);
	fake_dir(&f->root, "proc/10/task/10");
	fake_dir(&f->root, "proc/10/task/12");
	fake_dir(&f->root, "proc/12");
	fake_dir(&f->root, "proc/77/task/77");
	fake_file(&f->root, "instance/set_event_pid", "10\n12\n");
	fake_file(&f->root, "instance/set_ftrace_pid", "");
	fake_file(&f->root, "instance/set_event_notrace_pid", "");
	fake_file(&f->root, "instance/set_ftrace_notrace_pid", "");
	f->dir = open(fake_path(&f->root, "instance"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->dir >= 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	report_deinit(&f->report);
	close(f->dir);
	fake_root_deinit(&f->root);
	free(f);
	return 0;
}

static struct targets *targets_of(const struct fixture *f, const struct capture_request *request)
{
	struct targets *t;

	assert_int_equal(targets_new(&t, fake_path(&f->root, "proc"), request, NULL), 0);
	return t;
}

static struct targets *begun(struct fixture *f, const struct capture_request *request)
{
	struct targets *t = targets_of(f, request);

	assert_int_equal(targets_begin(t, f->dir, false, &f->report, NULL), 0);
	return t;
}

/* A check that is due. */
static void check_now(struct fixture *f, struct targets *t)
{
	const struct timespec pause = { .tv_nsec = 1 };

	while (now_ns(CLOCK_BOOTTIME) < targets_deadline(t))
		nanosleep(&pause, NULL);
	targets_check(t, now_ns(CLOCK_BOOTTIME), &f->report);
}

#define PROCESS(pid) .processes = (const pid_t[]){ pid }, .process_count = 1

static void threads_are_listed(void **state)
{
	const pid_t threads[] = { 77, 12 };
	struct capture_request request = { PROCESS(10), .pids = threads, .pid_count = 2 };
	struct targets *t = targets_of(*state, &request);
	struct capture_request filled = request;

	assert_int_equal(targets_fill(t, &filled, NULL), 0);
	assert_int_equal(filled.pid_count, 3);
	assert_int_equal(filled.pids[0], 10);
	assert_int_equal(filled.pids[1], 12);
	assert_int_equal(filled.pids[2], 77);
	assert_true(filled.follow_forks);
	targets_free(t);
}

static void without_processes_nothing_changes(void **state)
{
	const pid_t threads[] = { 77 };
	struct capture_request request = { .pids = threads, .pid_count = 1 };
	struct targets *t = targets_of(*state, &request);

	assert_null(t);
	assert_int_equal(targets_fill(t, &request, NULL), 0);
	assert_int_equal(request.pid_count, 1);
	assert_false(request.follow_forks);
	assert_int_equal(targets_begin(t, -EBADF, false, NULL, NULL), 0);
	assert_true(targets_deadline(t) == UINT64_MAX);
	targets_check(t, 1, NULL);
}

static void processes_that_are_not_there(void **state)
{
	const struct capture_request request = { PROCESS(11) };
	struct capture_request ended = { PROCESS(10) };
	_cleanup_error_ struct error err = ERROR_INIT;
	const struct fixture *f = *state;
	struct targets *t;

	assert_int_equal(targets_new(&t, fake_path(&f->root, "proc"), &request, &err), -ESRCH);
	assert_string_equal(err.message, "there is no process 11");
	assert_null(t);
	t = targets_of(f, &ended);
	rmdir(fake_path(&f->root, "proc/10/task/10"));
	rmdir(fake_path(&f->root, "proc/10/task/12"));
	rmdir(fake_path(&f->root, "proc/10/task"));
	assert_int_equal(targets_fill(t, &ended, &err), -ESRCH);
	targets_free(t);
}

/* A thread that starts between the listing and the filter. */
static void a_late_thread_is_added(void **state)
{
	const struct capture_request request = { PROCESS(10), .functions.tracer = "function" };
	struct fixture *f = *state;
	struct targets *t;

	fake_dir(&f->root, "proc/10/task/15");
	t = begun(f, &request);
	assert_non_null(strstr(fake_text(&f->root, "instance/set_event_pid"), "12\n15 \n"));
	assert_string_equal(fake_text(&f->root, "instance/set_ftrace_pid"), "15 \n");
	assert_string_equal(fake_text(&f->root, "instance/set_event_notrace_pid"), "");
	targets_free(t);
}

static void children_are_left_out(void **state)
{
	const pid_t threads[] = { 99 };
	const struct capture_request request = { PROCESS(10), .pids = threads, .pid_count = 1 };
	struct fixture *f = *state;
	struct targets *t = begun(f, &request);

	assert_int_equal(f->report.warning_count, 0);
	/* The kernel adds a thread, a child, and tasks that have ended since. */
	fake_dir(&f->root, "proc/10/task/16");
	fake_dir(&f->root, "proc/99");
	fake_file(&f->root, "instance/set_event_pid", "10\n12\n16\n55\n77\n99\n");
	check_now(f, t);
	assert_string_equal(fake_text(&f->root, "instance/set_event_notrace_pid"), "77 \n");
	assert_string_equal(fake_text(&f->root, "instance/set_ftrace_notrace_pid"), "");
	/* Once is enough. */
	check_now(f, t);
	assert_string_equal(fake_text(&f->root, "instance/set_event_notrace_pid"), "77 \n");
	assert_string_equal(fake_text(&f->root, "instance/set_event_pid"),
			    "10\n12\n16\n55\n77\n99\n");
	targets_free(t);
}

static void children_are_followed_if_asked(void **state)
{
	const struct capture_request request = { PROCESS(10), .follow_forks = true };
	struct fixture *f = *state;
	struct targets *t;

	fake_file(&f->root, "instance/set_event_pid", "10\n12\n77\n");
	t = begun(f, &request);
	assert_true(targets_deadline(t) == UINT64_MAX);
	assert_string_equal(fake_text(&f->root, "instance/set_event_notrace_pid"), "");
	assert_int_equal(f->report.warning_count, 0);
	targets_free(t);
}

static void an_old_kernel_is_reported(void **state)
{
	const struct capture_request request = { PROCESS(10) };
	struct fixture *f = *state;
	struct targets *t;

	unlink(fake_path(&f->root, "instance/set_event_notrace_pid"));
	fake_file(&f->root, "instance/set_event_pid", "10\n12\n77\n");
	t = begun(f, &request);
	assert_int_equal(f->report.warning_count, 1);
	assert_non_null(strstr(f->report.warnings[0], "this kernel cannot leave out"));
	check_now(f, t);
	targets_free(t);
}

static void checks_that_keep_failing_are_reported(void **state)
{
	const struct capture_request request = { PROCESS(10) };
	struct fixture *f = *state;
	struct targets *t = begun(f, &request);

	unlink(fake_path(&f->root, "instance/set_event_pid"));
	check_now(f, t);
	check_now(f, t);
	fake_file(&f->root, "instance/set_event_pid", "10\n12\n");
	check_now(f, t);
	/* It was for a moment. */
	assert_int_equal(f->report.warning_count, 0);
	unlink(fake_path(&f->root, "instance/set_event_pid"));
	for (unsigned i = 0; i < 7; i++)
		check_now(f, t);
	assert_int_equal(f->report.warning_count, 1);
	assert_non_null(strstr(f->report.warnings[0], "new threads may be missing"));
	targets_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(threads_are_listed, setup, teardown),
		cmocka_unit_test_setup_teardown(without_processes_nothing_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(processes_that_are_not_there, setup, teardown),
		cmocka_unit_test_setup_teardown(a_late_thread_is_added, setup, teardown),
		cmocka_unit_test_setup_teardown(children_are_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(children_are_followed_if_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(an_old_kernel_is_reported, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_that_keep_failing_are_reported, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
