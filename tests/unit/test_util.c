/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/io.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/siphash.h"

static void errors_carry_message_and_hint(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT, other = ERROR_INIT;

	assert_int_equal(error_errno(&err, -ENOENT, "%s", "out.json"), -ENOENT);
	assert_string_equal(err.message, "out.json: No such file or directory");
	assert_int_equal(error_hint(&err, "make %s first", "it"), -ENOENT);
	assert_int_equal(error_prefix(&err, "cannot write"), -ENOENT);
	assert_string_equal(err.message, "cannot write: out.json: No such file or directory");
	assert_string_equal(err.hint, "make it first");
	assert_int_equal(error_move(&other, &err), -ENOENT);
	assert_null(err.message);
	assert_int_equal(other.code, ENOENT);
	/* A message may be built from the one it replaces. */
	error_set(&other, -EIO, "%s!", other.message);
	assert_string_equal(other.message, "cannot write: out.json: No such file or directory!");
	assert_null(other.hint);
	assert_int_equal(error_set(NULL, -EIO, "x"), -EIO);
	/* The wrong sign must not pass for success. */
	assert_int_equal(error_set(NULL, EIO, "x"), -EIO);
	assert_int_equal(error_errno(&err, EIO, "x"), -EIO);
	assert_string_equal(err.message, "x: Input/output error");
}

static void errors_add_up(void **state _unused_)
{
	_cleanup_error_ struct error all = ERROR_INIT, err = ERROR_INIT;

	error_errno(&err, -ENOENT, "a");
	assert_int_equal(error_add(&all, &err), -ENOENT);
	assert_null(err.message);
	error_set(&err, -EBADMSG, "b");
	error_hint(&err, "mend b");
	assert_int_equal(error_add(&all, &err), -ENOENT);
	error_set(&err, -EBADMSG, "c");
	error_hint(&err, "mend c");
	assert_int_equal(error_add(&all, &err), -ENOENT);
	assert_string_equal(all.message, "a: No such file or directory\nb\nc");
	assert_string_equal(all.hint, "mend b");
	error_deinit(&all);
	for (int i = 0; i < 2; i++) {
		error_set(&err, -EBADMSG, "the same");
		assert_int_equal(error_add(&all, &err), -EBADMSG);
	}
	assert_string_equal(all.message, "the same");
	error_set(&err, -EBADMSG, "d");
	assert_int_equal(error_add(NULL, &err), -EBADMSG);
}

static void *errors_of_another_thread(void *ret)
{
	*(int *)ret = error_hint(NULL, "y");
	error_set(NULL, -EPERM, "x");
	return NULL;
}

static void unread_errors_keep_their_code(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	pthread_t thread;
	int first = 0;

	assert_int_equal(error_set(NULL, -EIO, "x"), -EIO);
	assert_int_equal(error_hint(NULL, "y"), -EIO);
	assert_int_equal(error_errno(NULL, -ENOENT, "x"), -ENOENT);
	assert_int_equal(error_prefix(NULL, "y"), -ENOENT);
	/* Errors that are read, and other threads' errors, are separate. */
	error_set(&err, -EPERM, "x");
	assert_int_equal(pthread_create(&thread, NULL, errors_of_another_thread, &first), 0);
	pthread_join(thread, NULL);
	assert_int_equal(error_hint(NULL, "y"), -ENOENT);
	assert_int_equal(error_move(NULL, &err), -EPERM);
	assert_int_equal(error_hint(NULL, "y"), -EPERM);
	/* Without a stored error the result is still a failure. */
	assert_int_equal(first, -EINVAL);
	assert_int_equal(error_hint(&err, "y"), -EINVAL);
	assert_int_equal(error_prefix(&err, "y"), -EINVAL);
	assert_int_equal(error_move(NULL, &err), -EINVAL);
}

static void nearest(void **state _unused_)
{
	static const char *const names[] = { "sched",	     "sock",   "irq",
					     "sched_switch", "signal", "syscalls" };
	const char *best[NEAREST_MAX];

	assert_int_equal(nearest_names("shced", names, ARRAY_SIZE(names), best), 2);
	assert_string_equal(best[0], "sched");
	assert_string_equal(best[1], "sched_switch");
	assert_int_equal(nearest_names("swtich", names, ARRAY_SIZE(names), best), 1);
	assert_string_equal(best[0], "sched_switch");
	assert_int_equal(nearest_names("switch", names, ARRAY_SIZE(names), best), 1);
	assert_string_equal(best[0], "sched_switch");
	assert_int_equal(nearest_names("zebra", names, ARRAY_SIZE(names), best), 0);
	assert_int_equal(nearest_names("", names, ARRAY_SIZE(names), best), 0);
	assert_true(nearest_names("sch", names, ARRAY_SIZE(names), best) <= NEAREST_MAX);
}

static void siphash_matches_the_reference(void **state _unused_)
{
	uint8_t key[16];

	for (uint8_t i = 0; i < sizeof(key); i++)
		key[i] = i;
	/* The authors' test vector: key 00..0f, message 00..07: 0x93f5f5799a932462. */
	assert_true(siphash_u64(key, UINT64_C(0x0706050403020100)) == UINT64_C(0x93f5f5799a932462));
}

static void small_files(void **state _unused_)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	assert_int_equal(read_file_at(AT_FDCWD, "/proc/self/stat", 4096, &b), 0);
	assert_true(b.len > 10);
	buf_clear(&b);
	assert_int_equal(read_file_at(AT_FDCWD, "/proc/self/stat", 3, &b), -EFBIG);
	assert_int_equal(read_file_at(AT_FDCWD, "/nowhere/at/all", 3, &b), -ENOENT);
}

static void whole_writes(void **state _unused_)
{
	_cleanup_close_ int r = -EBADF, w = -EBADF;
	char text[8] = "";
	int p[2];

	assert_int_equal(pipe(p), 0);
	r = p[0];
	w = p[1];
	struct iovec iov[] = { { .iov_base = (char[]){ 'a', 'b' }, .iov_len = 2 },
			       { .iov_base = NULL, .iov_len = 0 },
			       { .iov_base = (char[]){ 'c' }, .iov_len = 1 } };

	assert_int_equal(writev_full(w, iov, 3), 0);
	w = close_fd(w);
	assert_int_equal(read_full(r, text, sizeof(text)), 3);
	assert_string_equal(text, "abc");
	assert_int_equal(write_full(r, "x", 1), -EBADF);
}

#define FLOOD (1U << 20) /* more than a pipe holds */

static uint8_t flood_byte(size_t i)
{
	return (uint8_t)(i * 7 + i / 4096);
}

/* Writes as the exporter does: it can open no further descriptor. */
static _Noreturn void flood(int fd, int as, bool poor)
{
	static uint8_t data[FLOOD];
	struct rlimit limit;

	for (size_t i = 0; i < FLOOD; i++)
		data[i] = flood_byte(i);
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		_exit(2);
	limit.rlim_cur = poor ? 0 : MIN(limit.rlim_max, (rlim_t)2048);
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || (as != fd && dup2(fd, as) < 0))
		_exit(2);
	_exit(write_full(as, data, FLOOD) == 0 ? 0 : 1);
}

static void flood_through(int above, bool poor)
{
	static uint8_t got[FLOOD + 1];
	_cleanup_close_ int r = -EBADF;
	int p[2], status;
	pid_t pid;

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	r = p[0];
	assert_int_equal(fcntl(p[1], F_SETFL, O_NONBLOCK), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		flood(p[1], MAX(p[1], above), poor);
	close_fd(p[1]);
	/* The pipe is full by now. */
	usleep(20000);
	assert_int_equal(read_full(r, got, sizeof(got)), FLOOD);
	for (size_t i = 0; i < FLOOD; i++)
		assert_int_equal(got[i], flood_byte(i));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void full_pipes_are_waited_for(void **state _unused_)
{
	flood_through(0, false);
	flood_through(0, true);
}

static void full_pipes_of_high_numbers_are_waited_for(void **state _unused_)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max < 2048)
		skip();
	flood_through(FD_SETSIZE + 100, false);
}

/* A producer that shares the pipe made it non-blocking. */
static void empty_pipes_are_waited_for(void **state _unused_)
{
	int p[2], status;
	char got[3];
	pid_t pid;

	assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		usleep(20000);
		write_full(p[1], "a", 1);
		usleep(20000);
		write_full(p[1], "b", 1);
		_exit(0);
	}
	close(p[1]);
	assert_int_equal(read_full(p[0], got, sizeof(got)), 2);
	assert_memory_equal(got, "ab", 2);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(p[0]);
}

static void descriptors_are_closed_from_a_number_on(void **state _unused_)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		for (int fd = 20; fd < 40; fd++)
			dup2(STDERR_FILENO, fd);
		if (close_fds_from(30) < 0)
			_exit(1);
		for (int fd = 20; fd < 40; fd++)
			if ((fcntl(fd, F_GETFD) >= 0) != (fd < 30))
				_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void log_is_limited(void **state _unused_)
{
	struct log_limit limit = { .burst = 2, .interval_s = 1000 };

	assert_true(log_limit_pass(&limit));
	assert_true(log_limit_pass(&limit));
	assert_false(log_limit_pass(&limit));
	assert_int_equal(limit.held, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_carry_message_and_hint),
		cmocka_unit_test(errors_add_up),
		cmocka_unit_test(unread_errors_keep_their_code),
		cmocka_unit_test(nearest),
		cmocka_unit_test(siphash_matches_the_reference),
		cmocka_unit_test(small_files),
		cmocka_unit_test(whole_writes),
		cmocka_unit_test(full_pipes_are_waited_for),
		cmocka_unit_test(full_pipes_of_high_numbers_are_waited_for),
		cmocka_unit_test(empty_pipes_are_waited_for),
		cmocka_unit_test(descriptors_are_closed_from_a_number_on),
		cmocka_unit_test(log_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
