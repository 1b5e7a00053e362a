/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libtraced and the daemon's end of its rings, in one process: a recording gets what a program
 * marks.
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

#include "base/io.h"
#include "base/raw_clone.h"
#include "marks_end.h"
#include "traced/mark_record.h"
#include "traced/traced.h"

static const struct marks_limits limits = {
	.producers = 64,
	.producers_per_user = 16,
	.rings_per_user = 64,
	.bytes_per_user = 64U << 20,
};

static void test_marks(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_recording r;

	marks_find_daemon();
	assert_int_equal(traced_page.word, MARKS_OFF);
	assert_false(traced_enabled());
	marks_recording_begin(m, &r);
	assert_true(traced_enabled());
	{
		TRACED_SCOPE("test", "outer", TRACED_INT("n", -1), TRACED_STRING("s", "text"));
		TRACED_BEGIN("test", "inner");
		TRACED_END(TRACED_DOUBLE("d", 0.5));
	}
	TRACED_COUNTER("test", "counter", TRACED_INT("a", 1), TRACED_INT("b", 2));
	marks_recording_end(m, &r);
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

/* A thread that ended before the daemon looked is still a thread of its own. */
static void test_short_thread(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_recording r;
	pthread_t thread;
	long tid = 0;

	marks_find_daemon();
	marks_recording_begin(m, &r);
	assert_int_equal(pthread_create(&thread, NULL, mark_and_end, &tid), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	/* The kernel may need a moment longer. */
	while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
		sched_yield();
	marks_recording_end(m, &r);
	assert_int_equal(r.marks, 1);
	assert_int_equal(r.pid, getpid());
	assert_int_equal(r.tid, tid);
}

static void test_text(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	TRACED_FRAME(outer, "app", "main", NULL);
	TRACED_FRAME(inner, "app", "work", &outer);
	struct marks_recording r;

	marks_find_daemon();
	marks_recording_begin(m, &r);
	TRACED_SAMPLE("test", "sample", &inner);
	TRACED_ASYNC_BEGIN("test", "async", TRACED_LOCAL(7));
	TRACED_ASYNC_END("test", "async", TRACED_LOCAL(7));
	marks_end(m, &r.sink);
	assert_non_null(buf_string(&r.text));
	/* Frames are defined outermost first, and each label once per place. */
	assert_non_null(strstr(r.text.data, "=sample "));
	assert_true(strstr(r.text.data, "=main ") < strstr(r.text.data, "=work "));
	assert_int_equal(r.marks, 3);
	buf_deinit(&r.text);
	/* For another recording everything is defined again. */
	marks_recording_begin(m, &r);
	TRACED_SAMPLE("test", "sample", &inner);
	marks_end(m, &r.sink);
	assert_non_null(buf_string(&r.text));
	assert_non_null(strstr(r.text.data, "=main "));
	buf_deinit(&r.text);
}

static void test_several_recordings(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_recording a, b;

	marks_find_daemon();
	marks_recording_begin(m, &a);
	TRACED_BEGIN("test", "first");
	marks_recording_begin(m, &b);
	assert_int_equal(b.sink.generation, a.sink.generation + 1);
	TRACED_END();
	marks_recording_end(m, &a);
	assert_true(traced_enabled());
	TRACED_BEGIN("test", "second");
	TRACED_END();
	marks_recording_end(m, &b);
	assert_int_equal(a.marks, 2);
	assert_int_equal(b.marks, 3);
}

static void test_overflow(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	uint64_t before = traced_dropped(), dropped;
	struct marks_recording r;

	marks_find_daemon();
	marks_recording_begin(m, &r);
	for (int i = 0; i < 1000000; i++)
		TRACED_BEGIN("test", "flood");
	for (int i = 0; i < 3; i++)
		marks_dispatch(m);
	marks_drain(m);
	assert_int_equal(r.lost, 0); /* the next mark reports it */
	TRACED_END();
	dropped = traced_dropped() - before;
	assert_true(dropped > 900000);
	marks_recording_end(m, &r);
	assert_int_equal(r.marks + dropped, 1000001);
	assert_int_equal(r.lost, dropped);
	assert_int_equal(r.dropped - before, dropped);
}

#define QUARTERS 9

struct quarters {
	struct marks *m;
	struct marks_recording *r;
	uint64_t made[QUARTERS], taken[QUARTERS];
};

static void *fill_by_quarters(void *userdata)
{
	struct quarters *q = userdata;
	uint64_t made = 1;

	TRACED_END();
	marks_dispatch(q->m);
	for (int i = 0; i < QUARTERS; i++) {
		for (unsigned n = 0; n < MARK_RING_MIN / 16 / 4 + 8; n++, made++)
			TRACED_END();
		/* No drain: the program asked for what is taken. */
		marks_dispatch(q->m);
		q->made[i] = made;
		q->taken[i] = q->r->marks;
	}
	return NULL;
}

/* At three quarters left there is time to look, whatever the daemon does. */
static void test_wakes_at_each_quarter(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_recording r;
	struct quarters q = { .m = m, .r = &r };
	pthread_t thread;

	marks_find_daemon();
	marks_recording_begin(m, &r);
	traced_ring_size(MARK_RING_MIN);
	assert_int_equal(pthread_create(&thread, NULL, fill_by_quarters, &q), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	traced_ring_size(0);
	for (int i = 0; i < QUARTERS; i++)
		assert_int_equal(q.taken[i], q.made[i]);
	marks_recording_end(m, &r);
	assert_int_equal(r.marks, q.made[QUARTERS - 1]);
}

/* A mark that needs room for several records counts as one dropped mark. */
static void test_overflow_by_names(void **state _unused_)
{
	static struct traced_label known = TRACED_LABEL_INIT("test", "known");
	static struct traced_label key = TRACED_LABEL_INIT("", "key");
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct traced_arg arg = traced_arg_int(&key, 1);
	struct marks_recording r;
	uint64_t before;

	marks_find_daemon();
	marks_recording_begin(m, &r);
	traced_write_label('i', 0, &known, NULL, 0);
	for (before = traced_dropped(); traced_dropped() == before;)
		TRACED_END();
	before = traced_dropped();
	traced_write_label('i', 0, &known, &arg, 1);
	assert_int_equal(traced_dropped() - before, 1);
	marks_recording_end(m, &r);
}

static void *mark_once(void *unused)
{
	TRACED_INSTANT("test", "thread", TRACED_SCOPE_THREAD);
	return unused;
}

static void test_threads(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_count count;
	struct marks_recording r;

	marks_find_daemon();
	marks_recording_begin(m, &r);
	for (int i = 0; i < 40; i++) {
		pthread_t t;

		assert_int_equal(pthread_create(&t, NULL, mark_once, NULL), 0);
		pthread_join(t, NULL);
		/* Nothing stays of ended threads. */
		for (int n = 0; n < 3; n++)
			marks_dispatch(m);
		marks_get_count(m, &count);
		assert_true(count.rings <= 1);
	}
	marks_recording_end(m, &r);
	assert_int_equal(r.producers, 40);
	assert_int_equal(r.marks, 40);
}

#define CROWD 8
#define CROWD_MARKS 4000
static uint64_t crowd_dropped;

/* All threads use the same labels at the same time. */
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

/* Threads begin, mark and end side by side while rings are emptied: each mark is counted once. */
static void test_crowd(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	pthread_t threads[CROWD];
	struct marks_recording r;

	marks_find_daemon();
	crowd_dropped = 0;
	traced_ring_size(MARK_RING_MIN);
	marks_recording_begin(m, &r);
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
	marks_recording_end(m, &r);
	traced_ring_size(0);
	assert_int_equal(r.producers, 3 * CROWD);
	assert_int_equal(r.marks + crowd_dropped, 3 * CROWD * CROWD_MARKS);
	assert_true(r.marks > 0);
}

/* Many threads come and go before the daemon looks: the recording's end has the marks of all. */
static void test_threads_unheard(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_recording r;

	marks_find_daemon();
	marks_recording_begin(m, &r);
	for (int i = 0; i < 30; i++) {
		pthread_t t;

		assert_int_equal(pthread_create(&t, NULL, mark_once, NULL), 0);
		pthread_join(t, NULL);
	}
	marks_recording_end(m, &r);
	assert_int_equal(r.producers, 30);
	assert_int_equal(r.marks, 30);
}

#define QUEUE 400 /* more messages than a socket holds */
static pthread_barrier_t all_marked, all_heard;

static void *mark_before_and_after(void *ret_dropped)
{
	TRACED_MARK("test", "before");
	pthread_barrier_wait(&all_marked);
	pthread_barrier_wait(&all_heard);
	TRACED_MARK("test", "after");
	*(uint64_t *)ret_dropped = traced_dropped();
	return NULL;
}

/* Many threads at once fill the socket: no ring is lost. */
static void test_full_socket(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_limits many = limits;
	pthread_t threads[QUEUE];
	uint64_t dropped[QUEUE], sum = 0;
	struct marks_count count;
	struct marks_recording r;

	many.rings_per_user = QUEUE + 1;
	marks_set_limits(m, &many);
	traced_ring_size(MARK_RING_MIN);
	marks_find_daemon();
	marks_recording_begin(m, &r);
	pthread_barrier_init(&all_marked, NULL, QUEUE + 1);
	pthread_barrier_init(&all_heard, NULL, QUEUE + 1);
	TRACED_MARK("test", "first");
	for (size_t i = 0; i < QUEUE; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, mark_before_and_after, &dropped[i]), 0);
	pthread_barrier_wait(&all_marked);
	usleep(20000);
	for (int i = 0; i < QUEUE / 8; i++) {
		marks_dispatch(m);
		marks_drain(m);
	}
	marks_get_count(m, &count);
	assert_int_equal(count.producers, 1);
	assert_true(count.rings < QUEUE);
	pthread_barrier_wait(&all_heard);
	for (size_t i = 0; i < QUEUE; i++) {
		pthread_join(threads[i], NULL);
		sum += dropped[i];
	}
	TRACED_MARK("test", "last");
	marks_recording_end(m, &r);
	traced_ring_size(0);
	assert_in_range(sum, 1, QUEUE);
	assert_int_equal(r.marks, 2 + 2 * QUEUE - sum);
	pthread_barrier_destroy(&all_marked);
	pthread_barrier_destroy(&all_heard);
}

static void test_fork(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_recording r;
	int status;
	pid_t pid;

	marks_find_daemon();
	marks_recording_begin(m, &r);
	TRACED_BEGIN("test", "parent");
	pid = fork();
	if (!pid) {
		TRACED_INSTANT("test", "child", TRACED_SCOPE_PROCESS);
		/* It is written completely, so it is kept in any case. */
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* A child that does not know the library, and one that the library can't see. */
	pid = raw_clone(SIGCHLD);
	if (!pid) {
		TRACED_INSTANT("test", "grandchild", TRACED_SCOPE_PROCESS);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	TRACED_END();
	marks_recording_end(m, &r);
	assert_int_equal(r.producers, 3);
	assert_int_equal(r.marks, 4);
}

static void on_signal(int number _unused_)
{
	for (int i = 0; i < 3; i++)
		TRACED_INSTANT("test", "handler", TRACED_SCOPE_THREAD);
}

/* Signal handlers that mark interrupt other marks: each mark is present or counted. */
static void test_signals(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct sigaction action = { .sa_handler = on_signal };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec often = { { 0, 50000 }, { 0, 50000 } };
	uint64_t before = traced_dropped();
	struct marks_recording r;
	timer_t timer;

	marks_find_daemon();
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	marks_recording_begin(m, &r);
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	for (int i = 0; i < 200000; i++) {
		TRACED_INSTANT("test", "usual", TRACED_SCOPE_THREAD, TRACED_INT("i", i));
		if (i % 1000 == 0)
			marks_drain(m);
	}
	timer_delete(timer);
	marks_recording_end(m, &r);
	assert_true(r.marks + (traced_dropped() - before) >= 200000);
	assert_int_equal((r.marks + (traced_dropped() - before) - 200000) % 3, 0);
}

static void test_daemon_restarts(void **state _unused_)
{
	struct marks *m = marks_serve(&limits);
	struct marks_recording r;
	int evaluated = 0;

	marks_find_daemon();
	marks_recording_begin(m, &r);
	TRACED_BEGIN("test", "before");
	marks_recording_end(m, &r);
	assert_int_equal(r.marks, 1);
	marks_free(m);
	/* The page is gone: marks go nowhere until there is a new one. */
	assert_false(traced_enabled());
	TRACED_END(TRACED_INT("never evaluated", evaluated++));
	assert_int_equal(evaluated, 0);
	assert_int_equal(traced_page.word, MARKS_ABSENT);
	m = marks_serve(&limits);
	marks_recording_begin(m, &r);
	marks_find_daemon();
	assert_true(traced_page.word >= MARKS_GENERATION_MIN);
	marks_recording_end(m, &r);
	assert_true(r.marks >= 1);
	marks_free(m);
}

static void test_failing_recording(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_recording a, b;

	marks_find_daemon();
	marks_recording_begin(m, &a);
	marks_recording_begin(m, &b);
	a.fail = -EDQUOT;
	TRACED_MARK("test", "mark");
	for (int i = 0; i < 3; i++)
		marks_dispatch(m);
	marks_drain(m);
	assert_int_equal(a.sink.failed, -EDQUOT);
	marks_recording_end(m, &a);
	marks_recording_end(m, &b);
	assert_int_equal(a.marks, 0);
	assert_int_equal(b.marks, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_short_thread),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_several_recordings),
		cmocka_unit_test(test_wakes_at_each_quarter),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_overflow_by_names),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_threads_unheard),
		cmocka_unit_test(test_full_socket),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_daemon_restarts),
		cmocka_unit_test(test_failing_recording),
	};

	return cmocka_run_group_tests(tests, marks_folder_make, marks_folder_remove);
}
