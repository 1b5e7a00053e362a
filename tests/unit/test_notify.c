/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/service/notify.h"

static void test_notify(void **state _unused_)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char name[64], text[64] = "", far[200];
	unsigned long long before, at;

	unsetenv("NOTIFY_SOCKET");
	notify("READY=1");
	memset(far, 'a', sizeof(far) - 1);
	far[0] = '/';
	far[sizeof(far) - 1] = '\0';
	setenv("NOTIFY_SOCKET", far, 1);
	notify("READY=1");

	/* An abstract address: only its length ends the name. */
	snprintf(name, sizeof(name), "@traced-test-%d", getpid());
	memcpy(sa.sun_path + 1, name + 1, strlen(name) - 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	notify("READY=1");
	assert_int_equal(recv(fd, text, sizeof(text), 0), 7);
	assert_string_equal(text, "READY=1");
	memset(text, 0, sizeof(text));
	before = now_ns(CLOCK_MONOTONIC) / NSEC_PER_USEC;
	notify_reloading();
	assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
	assert_int_equal(sscanf(text, "RELOADING=1\nMONOTONIC_USEC=%llu", &at), 1);
	assert_in_range(at, before, now_ns(CLOCK_MONOTONIC) / NSEC_PER_USEC);
	unsetenv("NOTIFY_SOCKET");
	close(fd);
}

static void test_watchdog_is_ours(void **state _unused_)
{
	char pid[16];

	assert_int_equal(notify_watchdog_us(), 0);
	setenv("WATCHDOG_USEC", "30000000", 1);
	assert_int_equal(notify_watchdog_us(), 30000000);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_watchdog_us(), 0);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(notify_watchdog_us(), 30000000);
	setenv("WATCHDOG_USEC", "30s", 1);
	assert_int_equal(notify_watchdog_us(), 0);
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

static int out_of_the_way(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 10);

	assert_true(high >= 10);
	close(fd);
	return high;
}

static int handed_over(int fd, const char *count, pid_t to)
{
	char pid[16];

	if (fd >= 0)
		assert_int_equal(dup2(fd, 3), 3);
	snprintf(pid, sizeof(pid), "%d", to);
	setenv("LISTEN_FDS", count, 1);
	setenv("LISTEN_PID", pid, 1);
	return notify_take_socket();
}

static void test_take_socket(void **state _unused_)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	/* Keeps the descriptor that was 3 before. */
	int kept = fcntl(3, F_DUPFD_CLOEXEC, 10);
	int stream = out_of_the_way(socket(AF_UNIX, SOCK_STREAM, 0));
	int datagram = out_of_the_way(socket(AF_UNIX, SOCK_DGRAM, 0));

	assert_int_equal(notify_take_socket(), -ENOENT);
	assert_int_equal(handed_over(stream, "1", getppid()), -ENOENT);
	assert_int_equal(handed_over(datagram, "1", getpid()), -EINVAL);
	/* Not listening yet. */
	assert_int_equal(handed_over(stream, "1", getpid()), -EINVAL);
	assert_int_equal(bind(stream, (struct sockaddr *)&sa, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(stream, 1), 0);
	assert_int_equal(handed_over(stream, "2", getpid()), -EINVAL);
	assert_int_equal(handed_over(stream, "1", getpid()), 3);
	assert_int_equal(fcntl(3, F_GETFD), FD_CLOEXEC);
	assert_null(getenv("LISTEN_FDS"));
	assert_null(getenv("LISTEN_PID"));
	if (kept >= 0) {
		dup2(kept, 3);
		close(kept);
	} else {
		close(3);
	}
	close(stream);
	close(datagram);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notify),
		cmocka_unit_test(test_watchdog_is_ours),
		cmocka_unit_test(test_take_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
