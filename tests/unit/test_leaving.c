/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Exporters that do not end are charged to their user. */
#include "daemon/service/leaving.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/io.h"
#include "daemon/service/loop.h"
#include "daemon/service/manager.h"
#include "daemon/service/policy.h"
#include "memory_file.h"

#define MEMBER 1000
#define OTHER 1001

static struct manager m;

static int setup(void **state _unused_)
{
	m = (struct manager){ 0 };
	return loop_new(&m.loop) < 0 || leaving_new(&m.leaving, m.loop) < 0;
}

static int teardown(void **state _unused_)
{
	m.leaving = leaving_free(m.leaving);
	m.loop = loop_free(m.loop);
	return 0;
}

/* Returns what the exporter has open. */
static int add(uid_t uid, int spool_fd)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	leaving_add(m.leaving, uid, ends[0], spool_fd);
	return ends[1];
}

static unsigned count(uid_t uid)
{
	unsigned users;

	return leaving_count(m.leaving, uid, &users);
}

static void they_are_charged_until_they_are_gone(void **state _unused_)
{
	static const char text[8192] = { 1 };
	int spool = memory_file(text, sizeof(text)), fd = add(MEMBER, spool);

	close_fd(spool);
	assert_int_equal(count(MEMBER), 1);
	assert_int_equal(count(OTHER), 0);
	assert_int_equal(leaving_bytes(m.leaving, MEMBER), sizeof(text));
	assert_int_equal(leaving_bytes(m.leaving, OTHER), 0);
	/* A late result ends nothing. */
	assert_int_equal(write(fd, text, 100), 100);
	loop_step(m.loop, 0);
	assert_int_equal(count(MEMBER), 1);
	close_fd(fd);
	loop_step(m.loop, 1000000);
	assert_int_equal(count(MEMBER), 0);
	assert_int_equal(leaving_bytes(m.leaving, MEMBER), 0);
	leaving_add(m.leaving, MEMBER, -EBADF, -EBADF);
	assert_int_equal(count(MEMBER), 0);
}

static void a_file_that_has_a_name_is_counted_elsewhere(void **state _unused_)
{
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = add(MEMBER, self);

	assert_int_equal(leaving_bytes(m.leaving, MEMBER), 0);
	close_fd(self);
	close_fd(fd);
}

static void with_too_many_there_are_no_more(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int fds[64];

	for (int i = 0; i < 8; i++) {
		assert_int_equal(policy_check_exporters(&m, MEMBER, &err), 0);
		fds[i] = add(MEMBER, -EBADF);
	}
	assert_int_equal(policy_check_exporters(&m, MEMBER, &err), -EUSERS);
	assert_non_null(strstr(err.message, "8 of your exporters do not end"));
	assert_int_equal(policy_check_exporters(&m, OTHER, &err), 0);
	/* One person may have many uids. */
	for (unsigned i = 8; i < 64; i++)
		fds[i] = add(OTHER + i, -EBADF);
	assert_int_equal(policy_check_exporters(&m, OTHER, &err), -EUSERS);
	assert_int_equal(policy_check_exporters(&m, 0, &err), 0);
	for (int i = 0; i < 64; i++)
		close_fd(fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(they_are_charged_until_they_are_gone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_file_that_has_a_name_is_counted_elsewhere, setup,
						teardown),
		cmocka_unit_test_setup_teardown(with_too_many_there_are_no_more, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
