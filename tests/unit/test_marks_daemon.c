/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon's end of marks, with hand-made rings and messages. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "marks_end.h"
#include "traced/traced.h"

static const struct marks_limits limits = {
	.producers = 64,
	.producers_per_user = 16,
	.rings_per_user = 64,
	.bytes_per_user = 64U << 20,
};

static void dispatch(struct marks *m)
{
	for (int i = 0; i < 4; i++)
		marks_dispatch(m);
}

static unsigned rings_of(const struct marks *m)
{
	struct marks_count count;

	marks_get_count(m, &count);
	return count.rings;
}

/* A recording wakes the daemon for marks only if there are programs that can make some. */
static void test_wakes_for_programs_alone(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_recording rec;
	int s;

	marks_recording_begin(m, &rec);
	assert_int_equal(marks_deadline(m), UINT64_MAX);
	s = marks_connect();
	dispatch(m);
	assert_true(marks_deadline(m) <= now_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC);
	marks_drain(m);
	assert_true(marks_deadline(m) <= now_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC);
	close(s);
	dispatch(m);
	marks_drain(m);
	marks_drain(m);
	assert_int_equal(marks_deadline(m), UINT64_MAX);
	marks_recording_end(m, &rec);
}

/* A thread beyond the limit loses its own marks only. */
static void test_rings_beyond_the_limit(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	const uint64_t whole =
		marks_ring_message(MARK_RING_MIN).header + marks_ring_message(MARK_RING_MIN).size;
	struct marks_message msg = marks_ring_message(MARK_RING_MIN);
	struct marks_limits few = limits;
	struct marks_count count;
	int s;

	few.rings_per_user = 2;
	marks_set_limits(m, &few);
	s = marks_connect();
	dispatch(m);
	/* Root has no limits. */
	TAILQ_FIRST(&m->producers)->user->account = 1;
	for (int i = 0; i < 3; i++) {
		int fd = marks_memfd(whole, RING_SEALS);

		marks_send(s, &msg, fd);
		close(fd);
	}
	dispatch(m);
	assert_int_equal(rings_of(m), 2);
	marks_get_count(m, &count);
	assert_int_equal(count.refused, 1);
	assert_int_equal(count.producers, 1);
	close(s);
}

static unsigned rings_after(struct marks *m, const struct marks_message *msg, int fd)
{
	struct marks_count count;
	int s = marks_connect();

	marks_send(s, msg, fd);
	close(fd);
	dispatch(m);
	marks_get_count(m, &count);
	close(s);
	dispatch(m);
	return count.rings;
}

static void test_refused_rings(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_message good = marks_ring_message(MARK_RING_MIN), bad;
	const uint64_t whole = good.header + good.size;
	int fd;

	assert_int_equal(rings_after(m, &good, marks_memfd(whole, RING_SEALS)), 1);
	assert_int_equal(rings_after(m, &good, marks_memfd(whole, 0)), 0);
	assert_int_equal(rings_after(m, &good, marks_memfd(whole - 1, RING_SEALS)), 0);
	assert_int_equal(rings_after(m, &good, marks_memfd(whole + 1, RING_SEALS)), 0);
	assert_int_equal(rings_after(m, &good, marks_memfd(whole, F_SEAL_SHRINK)), 0);
	assert_int_equal(rings_after(m, &good, marks_memfd(whole, F_SEAL_GROW)), 0);
	assert_int_equal(rings_after(m, &good, marks_memfd(whole, RING_SEALS | F_SEAL_WRITE)), 0);
	assert_int_equal(rings_after(m, &good, marks_memfd(whole, RING_SEALS | F_SEAL_SEAL)), 0);
	assert_int_equal(rings_after(m, &good, open("/dev/zero", O_RDWR | O_CLOEXEC)), 0);
	fd = open(marks_folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd >= 0) {
		assert_int_equal(ftruncate(fd, (off_t)whole), 0);
		assert_int_equal(rings_after(m, &good, fd), 0);
	}
	bad = good;
	bad.size = MARK_RING_MIN + 8;
	assert_int_equal(rings_after(m, &bad, marks_memfd(1 << 20, RING_SEALS)), 0);
	bad.size = UINT32_MAX;
	assert_int_equal(rings_after(m, &bad, marks_memfd(1 << 20, RING_SEALS)), 0);
	bad = good;
	bad.header = 0;
	assert_int_equal(rings_after(m, &bad, marks_memfd(whole, RING_SEALS)), 0);
	bad.header = good.header + 1;
	assert_int_equal(rings_after(m, &bad, marks_memfd(1 << 20, RING_SEALS)), 0);
	bad = good;
	bad.magic++;
	assert_int_equal(rings_after(m, &bad, marks_memfd(whole, RING_SEALS)), 0);
}

/* A hole that is punched makes whoever looks at its pages wait. */
static void test_no_holes(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_message msg = marks_ring_message(MARK_RING_MIN);
	int fd = marks_memfd(msg.header + msg.size, RING_SEALS), s = marks_connect();
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	char *program = mmap(NULL, msg.header, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(program != MAP_FAILED);
	assert_int_equal(fallocate(fd, punch, 0, msg.header), 0);
	marks_send(s, &msg, fd);
	dispatch(m);
	assert_int_equal(rings_of(m), 1);
	if (!(fcntl(fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE))
		skip(); /* before Linux 5.1 */
	assert_int_equal(fallocate(fd, punch, 0, msg.header), -1);
	assert_int_equal(errno, EPERM);
	*program = 0;
	munmap(program, msg.header);
	close(fd);
	close(s);
	dispatch(m);
}

/* Heads that jump, go back, or point between records end the ring, and nothing else. */
static void test_lying_heads(void **state _unused_)
{
	static const uint32_t heads[] = { MARK_RING_MIN + 8, 4, UINT32_MAX - 7, 1U << 31 };
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_message msg = marks_ring_message(MARK_RING_MIN);
	struct marks_recording r;

	marks_find_daemon();
	marks_recording_begin(m, &r);
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		int fd = marks_memfd(msg.header + msg.size, RING_SEALS), s = marks_connect();
		struct mark_ring *shared =
			mmap(NULL, msg.header, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		struct marks_count count;

		marks_send(s, &msg, fd);
		dispatch(m);
		marks_get_count(m, &count);
		assert_int_equal(count.rings, 1);
		shared->head = heads[i];
		marks_drain(m);
		marks_get_count(m, &count);
		assert_int_equal(count.rings, 0);
		munmap(shared, msg.header);
		close(fd);
		close(s);
		dispatch(m);
	}
	TRACED_MARK("test", "unharmed");
	marks_recording_end(m, &r);
	assert_int_equal(r.marks, 1);
	assert_int_equal(r.bytes > 0, 1);
}

static void test_limits(void **state _unused_)
{
	struct marks_limits few = limits;
	struct marks *m = marks_serve(&limits);
	struct marks_count count;
	int sockets[8 + 64 + 4]; /* root may have 64 more */

	few.producers = 8;
	marks_set_limits(m, &few);
	for (size_t i = 0; i < ARRAY_SIZE(sockets); i++)
		sockets[i] = marks_connect();
	dispatch(m);
	marks_get_count(m, &count);
	assert_int_equal(count.producers, 8 + 64);
	assert_int_equal(count.refused, 4);
	for (size_t i = 0; i < ARRAY_SIZE(sockets); i++)
		close(sockets[i]);
	dispatch(m);
	marks_get_count(m, &count);
	assert_int_equal(count.producers, 0);
	marks_free(m);
}

static uid_t count_as(void *userdata, uid_t uid)
{
	assert_int_equal(uid, getuid());
	return *(const uid_t *)userdata;
}

/* The limits are of whom a user counts as; the recording has the user. */
static void test_accounts(void **state _unused_)
{
	uid_t account = getuid() + 1;
	struct marks_limits few = limits;
	struct marks_count count;
	struct marks *m;
	int sockets[3];

	few.producers_per_user = 2;
	few.account = count_as;
	few.userdata = &account;
	m = marks_serve(&few);
	for (size_t i = 0; i < ARRAY_SIZE(sockets); i++)
		sockets[i] = marks_connect();
	dispatch(m);
	marks_get_count(m, &count);
	assert_int_equal(count.producers, 2);
	assert_int_equal(count.refused, 1);
	assert_int_equal(TAILQ_FIRST(&m->producers)->uid, getuid());
	assert_int_equal(TAILQ_FIRST(&m->producers)->user->account, account);
	for (size_t i = 0; i < ARRAY_SIZE(sockets); i++)
		close(sockets[i]);
	dispatch(m);
	marks_free(m);
}

static void test_second_daemon(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	_cleanup_error_ struct error err = ERROR_INIT;
	struct marks *other = NULL;
	struct marks_recording r;

	marks_find_daemon();
	marks_recording_begin(m, &r);
	assert_int_equal(marks_new(&other, marks_folder, true, &limits, NULL, &err), -EADDRINUSE);
	assert_null(other);
	/* It has changed nothing. */
	assert_true(traced_enabled());
	marks_recording_end(m, &r);
}

/* Opens the page of this test in a process that is killed with it. */
static void leave_page(const char *path, bool transient)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		struct marks_page_file f;

		if (marks_page_open(&f, path, transient, NULL) == 0)
			raise(SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && access(path, F_OK) == 0);
}

static void test_page_of_the_killed(void **state _unused_)
{
	char path[80];
	struct marks_page_file f;

	snprintf(path, sizeof(path), "%s/of-the-killed", marks_folder);
	/* A private daemon was killed: the next one removes its page. */
	leave_page(path, true);
	leave_page(path, true);
	assert_int_equal(marks_page_open(&f, path, true, NULL), 0);
	marks_page_close(&f);
	assert_int_equal(access(path, F_OK), -1);
	/* The machine's daemon keeps it, even if a private daemon comes later. */
	leave_page(path, true);
	leave_page(path, false);
	assert_int_equal(marks_page_open(&f, path, true, NULL), 0);
	marks_page_close(&f);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(unlink(path), 0);
}

/* The address space has no room for the page. */
static void test_page_that_fails(void **state _unused_)
{
	char path[80];
	pid_t child;
	int status;

	snprintf(path, sizeof(path), "%s/that-fails", marks_folder);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const struct rlimit none = { 0, 0 };
		struct marks_page_file f;

		_exit(setrlimit(RLIMIT_AS, &none) < 0 ||
		      marks_page_open(&f, path, true, NULL) != -ENOMEM);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wakes_for_programs_alone),
		cmocka_unit_test(test_refused_rings),
		cmocka_unit_test(test_no_holes),
		cmocka_unit_test(test_lying_heads),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_accounts),
		cmocka_unit_test(test_rings_beyond_the_limit),
		cmocka_unit_test(test_second_daemon),
		cmocka_unit_test(test_page_of_the_killed),
		cmocka_unit_test(test_page_that_fails),
	};

	return cmocka_run_group_tests(tests, marks_folder_make, marks_folder_remove);
}
