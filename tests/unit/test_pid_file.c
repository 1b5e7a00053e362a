/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/service/pid_file.h"

static void test_pid_file(void **state _unused_)
{
	char dir[] = "/tmp/traced-test-XXXXXX", folder[64], path[80], want[16];
	struct pid_file first = PID_FILE_INIT, second = PID_FILE_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(folder, sizeof(folder), "%s/not/yet", dir);
	snprintf(path, sizeof(path), "%s/traced.pid", folder);
	snprintf(want, sizeof(want), "%d\n", getpid());
	assert_int_equal(pid_file_take(&first, folder, &err), 0);
	assert_int_equal(read_file_at(AT_FDCWD, path, 64, &text), 0);
	assert_string_equal(buf_string(&text), want);

	assert_int_equal(pid_file_take(&second, folder, &err), -EBUSY);
	snprintf(want, sizeof(want), "pid %d ", getpid());
	assert_non_null(strstr(err.message, want));
	/* The loser does not remove the winner's file. */
	pid_file_deinit(&second);
	assert_int_equal(access(path, F_OK), 0);
	pid_file_deinit(&first);
	assert_int_equal(access(path, F_OK), -1);

	/* A killed daemon left this file: its text is longer than ours, and no process owns it. */
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, "12345678901\n", 12), 12);
	close(fd);
	assert_int_equal(pid_file_take(&first, folder, &err), 0);
	buf_clear(&text);
	assert_int_equal(read_file_at(AT_FDCWD, path, 64, &text), 0);
	snprintf(want, sizeof(want), "%d\n", getpid());
	assert_string_equal(buf_string(&text), want);
	pid_file_deinit(&first);
	rmdir(folder);
	*strrchr(folder, '/') = '\0';
	rmdir(folder);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pid_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
