/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/closer.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#include "base/io.h"

#define STRANGER 12345
#define LINGER_S 20
/* Far less than LINGER_S, and far more than a busy machine needs. */
#define SOON_NS (5 * NSEC_PER_SEC)

/* The closer's threads get no signals: they wait as for a file whose server does not answer. */
static bool no_timers;

int __real_timer_create(clockid_t clock, struct sigevent *event, timer_t *ret);
int __wrap_timer_create(clockid_t clock, struct sigevent *event, timer_t *ret);

int __wrap_timer_create(clockid_t clock, struct sigevent *event, timer_t *ret)
{
	return no_timers ? -1 : __real_timer_create(clock, event, ret);
}

/* A TCP socket with unsent data that nobody reads. Closing it takes LINGER_S. */
static int lingering(int server, int *ret_peer)
{
	struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	static const char zeros[1 << 16];
	struct sockaddr_in to;
	socklen_t len = sizeof(to);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(getsockname(server, (struct sockaddr *)&to, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	*ret_peer = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	assert_true(*ret_peer >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	while (send(fd, zeros, sizeof(zeros), MSG_DONTWAIT) > 0)
		;
	return fd;
}

static int listening(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void wait_until_closed(int fd)
{
	const struct timespec step = { .tv_nsec = 1000000 };
	uint64_t end = now_ns(CLOCK_MONOTONIC) + SOON_NS;

	while (is_open(fd) && now_ns(CLOCK_MONOTONIC) < end)
		nanosleep(&step, NULL);
	assert_false(is_open(fd));
}

static void test_lingering_socket(void **state _unused_)
{
	_cleanup_(closer_freep) struct closer *c = NULL;
	uint64_t began, spent;
	int server = listening(), peer, fd = lingering(server, &peer);
	int plain = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(closer_new(&c), 0);
	began = now_ns(CLOCK_MONOTONIC);
	assert_int_equal(closer_close(c, STRANGER, CLOSER_FILE, fd), -EBADF);
	assert_int_equal(closer_close(c, STRANGER + 1, CLOSER_FILE, plain), -EBADF);
	/* Neither this thread nor the other user waits, and a signal ends the lingering. */
	wait_until_closed(plain);
	c = closer_free(c);
	spent = now_ns(CLOCK_MONOTONIC) - began;
	assert_true(spent < SOON_NS);
	assert_false(is_open(fd));
	close_fd(peer);
	close_fd(server);
}

/* The descriptor is nobody's but the connection's, in which it waits. */
static void test_descriptor_in_a_connection(void **state _unused_)
{
	_cleanup_(closer_freep) struct closer *c = NULL;
	int server = listening(), peer, fd = lingering(server, &peer), pair[2];
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec iov = { .iov_base = pair, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	uint64_t began;

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	assert_int_equal(closer_new(&c), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(sendmsg(pair[0], &msg, 0), 1);
	/* Another reference remains in the message, so this does not wait. */
	close_fd(fd);
	began = now_ns(CLOCK_MONOTONIC);
	closer_close(c, STRANGER, CLOSER_CONNECTION, pair[1]);
	wait_until_closed(pair[1]);
	c = closer_free(c);
	assert_true(now_ns(CLOCK_MONOTONIC) - began < SOON_NS);
	close_fd(pair[0]);
	close_fd(peer);
	close_fd(server);
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void test_many(void **state _unused_)
{
	const struct timespec step = { .tv_nsec = 1000000 };
	_cleanup_(closer_freep) struct closer *c = NULL;
	unsigned before = open_descriptors();
	uint64_t end = now_ns(CLOCK_MONOTONIC) + 4 * SOON_NS;

	assert_int_equal(closer_new(&c), 0);
	for (int i = 0; i < 20000; i++) {
		int fd;

		/* At the limit of descriptors the closer's threads are behind. */
		while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) {
			assert_true(now_ns(CLOCK_MONOTONIC) < end);
			nanosleep(&step, NULL);
		}
		closer_close(c, i % 3 ? STRANGER : 0, CLOSER_FILE, fd);
	}
	assert_false(closer_is_blocked(c, 0));
	c = closer_free(c);
	/* On a busy machine the threads take longer than closer_free() waits. */
	while (open_descriptors() > before && now_ns(CLOCK_MONOTONIC) < end)
		nanosleep(&step, NULL);
	assert_int_equal(open_descriptors(), before);
}

/* Users of whom none is blocked alone can together hold up too many threads. */
static void test_many_users(void **state _unused_)
{
	enum { USERS = 16, EACH = 4 };
	const struct timespec step = { .tv_nsec = 10000000 };
	_cleanup_(closer_freep) struct closer *c = NULL;
	int server = listening(), peers[USERS * EACH];
	uint64_t end = now_ns(CLOCK_MONOTONIC) + 4 * SOON_NS;

	assert_int_equal(listen(server, USERS * EACH), 0);
	assert_int_equal(closer_new(&c), 0);
	no_timers = true;
	for (unsigned i = 0; i < USERS * EACH; i++)
		closer_close(c, STRANGER + i % USERS, CLOSER_FILE, lingering(server, &peers[i]));
	/* A thread more begins with a user's next descriptor. */
	while (!closer_is_blocked(c, STRANGER - 1) && now_ns(CLOCK_MONOTONIC) < end) {
		for (unsigned i = 0; i < USERS; i++)
			closer_close(c, STRANGER + i, CLOSER_FILE,
				     open("/dev/null", O_RDONLY | O_CLOEXEC));
		nanosleep(&step, NULL);
	}
	assert_true(closer_is_blocked(c, STRANGER - 1));
	assert_false(closer_is_blocked(c, 0));
	no_timers = false;
	for (unsigned i = 0; i < USERS * EACH; i++)
		close_fd(peers[i]);
	close_fd(server);
}

static void test_without_a_closer(void **state _unused_)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(closer_close(NULL, STRANGER, CLOSER_FILE, fd), -EBADF);
	assert_false(is_open(fd));
	assert_false(closer_is_blocked(NULL, STRANGER));
	assert_int_equal(closer_close(NULL, STRANGER, CLOSER_FILE, -EBADF), -EBADF);
}

static void test_types(void **state _unused_)
{
	int pair[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	assert_int_equal(fd_type(pair[0]), S_IFIFO);
	assert_int_equal(fd_type(null), S_IFCHR);
	close_fd(pair[0]);
	close_fd(pair[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(fd_type(pair[0]), S_IFSOCK);
	close_fd(pair[0]);
	close_fd(pair[1]);
	close_fd(null);
	assert_int_equal(fd_type(null), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lingering_socket),
		cmocka_unit_test(test_descriptor_in_a_connection),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_many_users),
		cmocka_unit_test(test_without_a_closer),
		cmocka_unit_test(test_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
