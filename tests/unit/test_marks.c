/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libtraced and the daemon's end of its rings, in one process: what a program marks is
 * what a recording gets.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "marks/internal.h"
#include "proto/capture.pb-c.h"
#include "traced/mark_record.h"
#include "traced/traced.h"
#include "util/io.h"

static char folder[64];

static const struct marks_limits limits = {
	.producers = 64,
	.producers_per_user = 16,
	.rings_per_user = 64,
	.bytes_per_user = 64U << 20,
};

/* A recording in memory. */
struct recording {
	struct marks_sink sink;
	struct buf text; /* one line for each record */
	unsigned producers, chunks;
	uint64_t dropped, lost, marks, bytes;
	uint32_t epochs[256]; /* the last one of each ring */
	int32_t pid, tid;
	char comm[64];
	int fail; /* what write returns */
};

static void take_record(struct recording *r, uint32_t ring, const struct mark_record *h,
			const char *fields)
{
	size_t len = h->words * 8U - sizeof(*h);

	assert_true(ring < ARRAY_SIZE(r->epochs));
	if (h->phase == MARK_EPOCH)
		r->epochs[ring] = h->label;
	if (r->epochs[ring] < r->sink.generation)
		return; /* of a recording before */
	if (h->phase >= MARK_PHASE_MIN) {
		r->marks++;
		if (r->text.len < 4096)
			buf_printf(&r->text, "%c%u ", h->phase, h->label);
	}
	while (len) {
		struct mark_field f;
		uint64_t value = 0;

		assert_true(len >= sizeof(f));
		memcpy(&f, fields, sizeof(f));
		assert_true(f.words >= 1 && f.words * 8U <= len);
		if (f.words > 1)
			memcpy(&value, fields + 8, 8);
		if (f.kind == MARK_COUNT && h->phase == MARK_LOST)
			r->lost += value;
		if (h->phase == MARK_DEFINE && f.kind == MARK_NAME && r->text.len < 4096)
			buf_printf(&r->text, "%u=%.*s ", h->label, (int)(uint32_t)value,
				   fields + 12);
		fields += f.words * 8U;
		len -= f.words * 8U;
	}
}

static void take_records(struct recording *r, uint32_t ring, const char *p, size_t len)
{
	uint64_t before = 0;

	while (len) {
		struct mark_record h;

		assert_true(len >= sizeof(h));
		memcpy(&h, p, sizeof(h));
		assert_true(h.words >= 2 && h.words * 8U <= len);
		assert_true(h.time >= before);
		before = h.time;
		take_record(r, ring, &h, p + sizeof(h));
		p += h.words * 8U;
		len -= h.words * 8U;
	}
}

static int on_chunk(void *userdata, enum chunk_type type, const struct iovec *iov, int count)
{
	struct recording *r = userdata;
	struct marks_header h;

	if (r->fail)
		return r->fail;
	r->chunks++;
	if (type == CHUNK_PRODUCER) {
		Traced__Capture__Producer *p =
			traced__capture__producer__unpack(NULL, iov[0].iov_len, iov[0].iov_base);

		assert_non_null(p);
		assert_int_equal(count, 1);
		assert_int_equal(p->generation, r->sink.generation);
		r->producers++;
		r->pid = p->pid;
		r->tid = p->tid;
		snprintf(r->comm, sizeof(r->comm), "%.*s", (int)p->comm.len, p->comm.data);
		traced__capture__producer__free_unpacked(p, NULL);
		return 0;
	}
	assert_int_equal(type, CHUNK_MARKS);
	assert_int_equal(count, 2);
	assert_int_equal(iov[0].iov_len, sizeof(h));
	memcpy(&h, iov[0].iov_base, sizeof(h));
	r->dropped = h.dropped;
	r->bytes += iov[1].iov_len;
	take_records(r, h.ring, iov[1].iov_base, iov[1].iov_len);
	return 0;
}

static struct marks *new_marks(void)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct marks *m = NULL;

	if (marks_new(&m, folder, true, &limits, &err) < 0)
		fail_msg("%s", err.message);
	return m;
}

static void begin(struct marks *m, struct recording *r)
{
	*r = (struct recording){ .sink = { .write = on_chunk, .userdata = r } };
	assert_int_equal(marks_begin(m, &r->sink), 0);
}

static void end(struct marks *m, struct recording *r)
{
	marks_end(m, &r->sink);
	buf_deinit(&r->text);
}

/* Once a second a program looks for a daemon that was not there. */
static void find_daemon(void)
{
	for (int i = 0; i < 300 && traced_page.word == MARKS_ABSENT; i++) {
		const struct timespec pause = { .tv_nsec = 10000000 };

		TRACED_INSTANT("test", "nobody", TRACED_SCOPE_THREAD);
		nanosleep(&pause, NULL);
	}
	TRACED_INSTANT("test", "nobody", TRACED_SCOPE_THREAD);
}

static void test_marks(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	struct recording r;

	find_daemon();
	assert_int_equal(traced_page.word, MARKS_OFF);
	assert_false(traced_enabled());
	begin(m, &r);
	assert_true(traced_enabled());
	{
		TRACED_SCOPE("test", "outer", TRACED_INT("n", -1), TRACED_STRING("s", "text"));
		TRACED_BEGIN("test", "inner");
		TRACED_END(TRACED_DOUBLE("d", 0.5));
	}
	TRACED_COUNTER("test", "counter", TRACED_INT("a", 1), TRACED_INT("b", 2));
	end(m, &r);
	assert_false(traced_enabled());
	assert_int_equal(r.producers, 1);
	assert_int_equal(r.pid, getpid());
	assert_int_equal(r.tid, syscall(SYS_gettid));
	assert_string_equal(r.comm, "test_marks");
	assert_int_equal(r.marks, 5);
	assert_int_equal(r.dropped, 0);
}

static void *mark_and_end(void *tid)
{
	*(long *)tid = syscall(SYS_gettid);
	TRACED_INSTANT("test", "short", TRACED_SCOPE_THREAD);
	return NULL;
}

/* A thread that has ended before anybody looked is no other thread. */
static void test_short_thread(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	struct recording r;
	pthread_t thread;
	long tid = 0;

	find_daemon();
	begin(m, &r);
	assert_int_equal(pthread_create(&thread, NULL, mark_and_end, &tid), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	/* The kernel may take a moment longer over it. */
	while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
		sched_yield();
	end(m, &r);
	assert_int_equal(r.marks, 1);
	assert_int_equal(r.pid, getpid());
	assert_int_equal(r.tid, tid);
}

static void test_text(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	TRACED_FRAME(outer, "app", "main", NULL);
	TRACED_FRAME(inner, "app", "work", &outer);
	struct recording r;

	find_daemon();
	begin(m, &r);
	TRACED_SAMPLE("test", "sample", &inner);
	TRACED_ASYNC_BEGIN("test", "async", TRACED_LOCAL(7));
	TRACED_ASYNC_END("test", "async", TRACED_LOCAL(7));
	marks_end(m, &r.sink);
	assert_non_null(buf_string(&r.text));
	/* Frames are defined outermost first, and each label once a place. */
	assert_non_null(strstr(r.text.data, "=sample "));
	assert_true(strstr(r.text.data, "=main ") < strstr(r.text.data, "=work "));
	assert_int_equal(r.marks, 3);
	buf_deinit(&r.text);
	/* For another recording everything is defined anew. */
	begin(m, &r);
	TRACED_SAMPLE("test", "sample", &inner);
	marks_end(m, &r.sink);
	assert_non_null(buf_string(&r.text));
	assert_non_null(strstr(r.text.data, "=main "));
	buf_deinit(&r.text);
}

static void test_several_recordings(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	struct recording a, b;

	find_daemon();
	begin(m, &a);
	TRACED_BEGIN("test", "first");
	begin(m, &b);
	assert_int_equal(b.sink.generation, a.sink.generation + 1);
	TRACED_END();
	end(m, &a);
	assert_true(traced_enabled());
	TRACED_BEGIN("test", "second");
	TRACED_END();
	end(m, &b);
	assert_int_equal(a.marks, 2);
	assert_int_equal(b.marks, 3);
}

static void test_overflow(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	uint64_t before = traced_dropped(), dropped;
	struct recording r;

	find_daemon();
	begin(m, &r);
	for (int i = 0; i < 1000000; i++)
		TRACED_BEGIN("test", "flood");
	for (int i = 0; i < 3; i++)
		marks_dispatch(m);
	marks_drain(m);
	assert_int_equal(r.lost, 0); /* is said with the next one */
	TRACED_END();
	dropped = traced_dropped() - before;
	assert_true(dropped > 900000);
	end(m, &r);
	assert_int_equal(r.marks + dropped, 1000001);
	assert_int_equal(r.lost, dropped);
	assert_int_equal(r.dropped - before, dropped);
}

/* A mark that needs room for several things is one that was dropped, not several. */
static void test_overflow_by_names(void **state _unused_)
{
	static struct traced_label known = TRACED_LABEL_INIT("test", "known");
	static struct traced_label key = TRACED_LABEL_INIT("", "key");
	_cleanup_(marks_freep) struct marks *m = new_marks();
	struct traced_arg arg = traced_arg_int(&key, 1);
	struct recording r;
	uint64_t before;

	find_daemon();
	begin(m, &r);
	traced_write_label('i', 0, &known, NULL, 0);
	for (before = traced_dropped(); traced_dropped() == before;)
		TRACED_END();
	before = traced_dropped();
	traced_write_label('i', 0, &known, &arg, 1);
	assert_int_equal(traced_dropped() - before, 1);
	end(m, &r);
}

static void *mark_once(void *unused)
{
	TRACED_INSTANT("test", "thread", TRACED_SCOPE_THREAD);
	return unused;
}

static void test_threads(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	struct marks_count count;
	struct recording r;

	find_daemon();
	begin(m, &r);
	for (int i = 0; i < 40; i++) {
		pthread_t t;

		assert_int_equal(pthread_create(&t, NULL, mark_once, NULL), 0);
		pthread_join(t, NULL);
		/* Of ended threads nothing stays. */
		for (int n = 0; n < 3; n++)
			marks_dispatch(m);
		marks_get_count(m, &count);
		assert_true(count.rings <= 1);
	}
	end(m, &r);
	assert_int_equal(r.producers, 40);
	assert_int_equal(r.marks, 40);
}

#define CROWD 8
#define CROWD_MARKS 4000
static uint64_t crowd_dropped;

/* Labels of all are the same, and met at the same time. */
static void *mark_in_a_crowd(void *number)
{
	uint64_t before = traced_dropped();

	for (unsigned i = 0; i < CROWD_MARKS / 2; i++) {
		TRACED_BEGIN("test", "crowd", TRACED_UINT("i", i),
			     TRACED_STRING("name", "of some length"));
		TRACED_END();
		if (i % 512 == (uintptr_t)number * 64)
			sched_yield();
	}
	__atomic_add_fetch(&crowd_dropped, traced_dropped() - before, __ATOMIC_RELAXED);
	return number;
}

/* Threads that begin, mark and end side by side, while rings are emptied: each mark is counted
 * once. */
static void test_crowd(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	pthread_t threads[CROWD];
	struct recording r;

	find_daemon();
	crowd_dropped = 0;
	traced_ring_size(MARK_RING_MIN);
	begin(m, &r);
	for (int round = 0; round < 3; round++) {
		for (uintptr_t i = 0; i < CROWD; i++)
			assert_int_equal(
				pthread_create(&threads[i], NULL, mark_in_a_crowd, (void *)i), 0);
		for (int i = 0; i < 200; i++) {
			marks_dispatch(m);
			marks_drain(m);
		}
		for (size_t i = 0; i < CROWD; i++)
			pthread_join(threads[i], NULL);
	}
	end(m, &r);
	traced_ring_size(0);
	assert_int_equal(r.producers, 3 * CROWD);
	assert_int_equal(r.marks + crowd_dropped, 3 * CROWD * CROWD_MARKS);
	assert_true(r.marks > 0);
}

/* Many threads come and go before the daemon looks: the recording's end hears of all. */
static void test_threads_unheard(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	struct recording r;

	find_daemon();
	begin(m, &r);
	for (int i = 0; i < 30; i++) {
		pthread_t t;

		assert_int_equal(pthread_create(&t, NULL, mark_once, NULL), 0);
		pthread_join(t, NULL);
	}
	end(m, &r);
	assert_int_equal(r.producers, 30);
	assert_int_equal(r.marks, 30);
}

static void test_fork(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	struct recording r;
	int status;
	pid_t pid;

	find_daemon();
	begin(m, &r);
	TRACED_BEGIN("test", "parent");
	pid = fork();
	if (!pid) {
		TRACED_INSTANT("test", "child", TRACED_SCOPE_PROCESS);
		/* Written completely, so it is kept whatever comes. */
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* A child that knows nothing of the library; and one that the library can't see. */
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		TRACED_INSTANT("test", "grandchild", TRACED_SCOPE_PROCESS);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	TRACED_END();
	end(m, &r);
	assert_int_equal(r.producers, 3);
	assert_int_equal(r.marks, 4);
}

static void on_signal(int number _unused_)
{
	for (int i = 0; i < 3; i++)
		TRACED_INSTANT("test", "handler", TRACED_SCOPE_THREAD);
}

/* Marks in handlers that interrupt marks: each is there or counted. */
static void test_signals(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	struct sigaction action = { .sa_handler = on_signal };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec often = { { 0, 50000 }, { 0, 50000 } };
	uint64_t before = traced_dropped();
	struct recording r;
	timer_t timer;

	find_daemon();
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	begin(m, &r);
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	for (int i = 0; i < 200000; i++) {
		TRACED_INSTANT("test", "usual", TRACED_SCOPE_THREAD, TRACED_INT("i", i));
		if (i % 1000 == 0)
			marks_drain(m);
	}
	timer_delete(timer);
	end(m, &r);
	assert_true(r.marks + (traced_dropped() - before) >= 200000);
	assert_int_equal((r.marks + (traced_dropped() - before) - 200000) % 3, 0);
}

static void test_daemon_restarts(void **state _unused_)
{
	struct marks *m = new_marks();
	struct recording r;
	int evaluated = 0;

	find_daemon();
	begin(m, &r);
	TRACED_BEGIN("test", "before");
	end(m, &r);
	assert_int_equal(r.marks, 1);
	marks_free(m);
	/* The page is gone: marks go nowhere, until there is a new one. */
	assert_false(traced_enabled());
	TRACED_END(TRACED_INT("never evaluated", evaluated++));
	assert_int_equal(evaluated, 0);
	assert_int_equal(traced_page.word, MARKS_ABSENT);
	m = new_marks();
	begin(m, &r);
	find_daemon();
	assert_true(traced_page.word >= MARKS_GENERATION_MIN);
	end(m, &r);
	assert_true(r.marks >= 1);
	marks_free(m);
}

static void test_failing_recording(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	struct recording a, b;

	find_daemon();
	begin(m, &a);
	begin(m, &b);
	a.fail = -EDQUOT;
	TRACED_MARK("test", "mark");
	for (int i = 0; i < 3; i++)
		marks_dispatch(m);
	marks_drain(m);
	assert_int_equal(a.sink.failed, -EDQUOT);
	end(m, &a);
	end(m, &b);
	assert_int_equal(a.marks, 0);
	assert_int_equal(b.marks, 1);
}

static int connect_to(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/" MARKS_SOCKET, folder);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static void send_ring(int fd, const struct marks_message *msg, int ring)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)msg, .iov_len = sizeof(*msg) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &ring, sizeof(int));
	assert_int_equal(sendmsg(fd, &m, 0), sizeof(*msg));
}

static struct marks_message ring_message(void)
{
	return (struct marks_message){ .magic = MARKS_MESSAGE_MAGIC,
				       .type = MARKS_RING,
				       .version = MARK_VERSION,
				       .header = (uint32_t)sysconf(_SC_PAGESIZE),
				       .size = MARK_RING_MIN,
				       .tid = 1 };
}

static int new_memfd(uint64_t size, int seals)
{
	int fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void dispatch(struct marks *m)
{
	for (int i = 0; i < 4; i++)
		marks_dispatch(m);
}

static unsigned rings_after(struct marks *m, const struct marks_message *msg, int fd)
{
	struct marks_count count;
	int s = connect_to();

	send_ring(s, msg, fd);
	close(fd);
	dispatch(m);
	marks_get_count(m, &count);
	close(s);
	dispatch(m);
	return count.rings;
}

static void test_refused_rings(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	struct marks_message good = ring_message(), bad;
	const uint64_t whole = good.header + good.size;
	int fd;

	assert_int_equal(rings_after(m, &good, new_memfd(whole, F_SEAL_SHRINK)), 1);
	assert_int_equal(rings_after(m, &good, new_memfd(whole, 0)), 0);
	assert_int_equal(rings_after(m, &good, new_memfd(whole - 1, F_SEAL_SHRINK)), 0);
	assert_int_equal(rings_after(m, &good, new_memfd(whole, F_SEAL_SHRINK | F_SEAL_WRITE)), 0);
	assert_int_equal(rings_after(m, &good, open("/dev/zero", O_RDWR | O_CLOEXEC)), 0);
	fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd >= 0) {
		assert_int_equal(ftruncate(fd, (off_t)whole), 0);
		assert_int_equal(rings_after(m, &good, fd), 0);
	}
	bad = good;
	bad.size = MARK_RING_MIN + 8;
	assert_int_equal(rings_after(m, &bad, new_memfd(1 << 20, F_SEAL_SHRINK)), 0);
	bad.size = UINT32_MAX;
	assert_int_equal(rings_after(m, &bad, new_memfd(1 << 20, F_SEAL_SHRINK)), 0);
	bad = good;
	bad.header = 0;
	assert_int_equal(rings_after(m, &bad, new_memfd(whole, F_SEAL_SHRINK)), 0);
	bad.header = good.header + 1;
	assert_int_equal(rings_after(m, &bad, new_memfd(1 << 20, F_SEAL_SHRINK)), 0);
	bad = good;
	bad.magic++;
	assert_int_equal(rings_after(m, &bad, new_memfd(whole, F_SEAL_SHRINK)), 0);
}

/* Heads that jump, go back, or point between records end the ring, and nothing else. */
static void test_lying_heads(void **state _unused_)
{
	static const uint32_t heads[] = { MARK_RING_MIN + 8, 4, UINT32_MAX - 7, 1U << 31 };
	_cleanup_(marks_freep) struct marks *m = new_marks();
	struct marks_message msg = ring_message();
	struct recording r;

	find_daemon();
	begin(m, &r);
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		int fd = new_memfd(msg.header + msg.size, F_SEAL_SHRINK), s = connect_to();
		struct mark_ring *shared =
			mmap(NULL, msg.header, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		struct marks_count count;

		send_ring(s, &msg, fd);
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
	end(m, &r);
	assert_int_equal(r.marks, 1);
	assert_int_equal(r.bytes > 0, 1);
}

static void test_limits(void **state _unused_)
{
	struct marks_limits few = limits;
	struct marks *m = new_marks();
	struct marks_count count;
	int sockets[12];

	few.producers = 8;
	marks_set_limits(m, &few);
	for (size_t i = 0; i < ARRAY_SIZE(sockets); i++)
		sockets[i] = connect_to();
	dispatch(m);
	marks_get_count(m, &count);
	assert_int_equal(count.producers, 8);
	assert_int_equal(count.refused, 4);
	for (size_t i = 0; i < ARRAY_SIZE(sockets); i++)
		close(sockets[i]);
	dispatch(m);
	marks_get_count(m, &count);
	assert_int_equal(count.producers, 0);
	marks_free(m);
}

static void test_second_daemon(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = new_marks();
	_cleanup_error_ struct error err = ERROR_INIT;
	struct marks *other = NULL;
	struct recording r;

	find_daemon();
	begin(m, &r);
	assert_int_equal(marks_new(&other, folder, true, &limits, &err), -EADDRINUSE);
	assert_null(other);
	/* It has touched nothing. */
	assert_true(traced_enabled());
	end(m, &r);
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

	snprintf(path, sizeof(path), "%s/of-the-killed", folder);
	/* A private daemon was killed: the next one removes it. */
	leave_page(path, true);
	leave_page(path, true);
	assert_int_equal(marks_page_open(&f, path, true, NULL), 0);
	marks_page_close(&f);
	assert_int_equal(access(path, F_OK), -1);
	/* The machine's daemon keeps it, also for a private one after it. */
	leave_page(path, true);
	leave_page(path, false);
	assert_int_equal(marks_page_open(&f, path, true, NULL), 0);
	marks_page_close(&f);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(unlink(path), 0);
}

static int setup(void **state _unused_)
{
	snprintf(folder, sizeof(folder), "/tmp/test-marks-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	return setenv("TRACED_MARKS", folder, 1);
}

static int teardown(void **state _unused_)
{
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_short_thread),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_several_recordings),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_overflow_by_names),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_threads_unheard),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_daemon_restarts),
		cmocka_unit_test(test_failing_recording),
		cmocka_unit_test(test_refused_rings),
		cmocka_unit_test(test_lying_heads),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_second_daemon),
		cmocka_unit_test(test_page_of_the_killed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
