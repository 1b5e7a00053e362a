/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/service/worker.h"

/* The worker's clock: works take as long as they say, however busy the machine is. */
static _Atomic uint64_t worker_ns = NSEC_PER_SEC;

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, ts);
	ts->tv_sec = (time_t)(worker_ns / NSEC_PER_SEC);
	ts->tv_nsec = (long)(worker_ns % NSEC_PER_SEC);
	return 0;
}

struct fixture {
	struct loop *loop;
	struct worker *worker;
	int gate;	  /* the first work waits until it is readable */
	char ran[64];	  /* a letter for each work, by the thread */
	unsigned done;	  /* works, by the loop */
	atomic_uint runs; /* of the duty, and of works at the gate */
	unsigned told, done_at_end;
	_Atomic uint64_t next_ns; /* the duty returns now + this */
};

struct labour {
	struct work work;
	struct fixture *f;
	char letter;
	unsigned slices; /* 0: it is one */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(loop_new(&f->loop), 0);
	f->gate = eventfd(0, EFD_CLOEXEC);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	worker_free(f->worker);
	close_fd(f->gate);
	loop_free(f->loop);
	free(f);
	return 0;
}

static bool labour_run(struct work *w)
{
	struct labour *l = container_of(w, struct labour, work);

	if (l->letter == '-') {
		struct pollfd fd = { .fd = l->f->gate, .events = POLLIN };

		l->f->runs++;
		poll(&fd, 1, -1);
		return false;
	}
	if (l->letter == '.')
		worker_ns += 30 * NSEC_PER_MSEC;
	/* A capital letter takes long. */
	if (l->letter >= 'A' && l->letter <= 'Z')
		worker_ns += 120 * NSEC_PER_MSEC;
	l->f->ran[strlen(l->f->ran)] = l->letter;
	return l->slices && --l->slices;
}

static void labour_done(struct work *w)
{
	struct labour *l = container_of(w, struct labour, work);

	l->f->done++;
}

/* A work in slices, which has run for ns already. */
static void submit_long(struct fixture *f, struct labour *l, char letter, uid_t account,
			unsigned slices, uint64_t ns)
{
	*l = (struct labour){
		.work = { .run = labour_run, .done = labour_done, .account = account, .ns = ns },
		.f = f,
		.letter = letter,
		.slices = slices,
	};
	worker_submit(f->worker, &l->work);
}

static void submit(struct fixture *f, struct labour *l, char letter, uid_t account)
{
	submit_long(f, l, letter, account, 0, 0);
}

static void await_runs(struct fixture *f, unsigned count)
{
	const struct timespec pause = { .tv_nsec = NSEC_PER_MSEC };

	for (int i = 0; i < 20000 && f->runs < count; i++)
		nanosleep(&pause, NULL);
	assert_true(f->runs >= count);
}

/* The thread waits at the gate. */
static void close_gate(struct fixture *f, struct labour *l)
{
	submit(f, l, '-', 0);
	await_runs(f, 1);
}

static void open_gate(struct fixture *f)
{
	uint64_t one = 1;

	assert_int_equal(write(f->gate, &one, sizeof(one)), sizeof(one));
}

static void turn_until_done(struct fixture *f, unsigned count)
{
	uint64_t end = now_ns(CLOCK_BOOTTIME) + 20 * NSEC_PER_SEC;

	while (f->done < count) {
		assert_true(now_ns(CLOCK_BOOTTIME) < end);
		assert_int_equal(loop_step(f->loop, 10000), 0);
	}
}

static void users_take_turns(void **state)
{
	struct fixture *f = *state;
	struct labour l[8];

	assert_int_equal(worker_new(&f->worker, f->loop, NULL), 0);
	close_gate(f, &l[0]);
	submit(f, &l[1], 'a', 1000);
	submit(f, &l[2], 'b', 1000);
	submit(f, &l[3], 'c', 1000);
	submit(f, &l[4], 'x', 1001);
	submit(f, &l[5], 'y', 1001);
	submit(f, &l[6], '0', 0);
	open_gate(f);
	turn_until_done(f, 7);
	assert_string_equal(f->ran, "ax0byc");
}

/* One who keeps the thread busy delays others by one work, not by as many as there are users. */
static void who_took_long_comes_later(void **state)
{
	struct fixture *f = *state;
	struct labour l[8];

	assert_int_equal(worker_new(&f->worker, f->loop, NULL), 0);
	close_gate(f, &l[0]);
	submit(f, &l[1], 'S', 1000);
	submit(f, &l[2], 'T', 1001);
	submit(f, &l[3], 'a', 1000);
	submit(f, &l[4], 'b', 1001);
	submit(f, &l[5], 'x', 1002);
	submit(f, &l[6], 'y', 1002);
	submit(f, &l[7], 'z', 1002);
	open_gate(f);
	turn_until_done(f, 8);
	assert_string_equal(f->ran, "STxyzab");
}

/* Users come between two slices of another's work, and the user's own next work comes after it. */
static void slices_let_others_in_between(void **state)
{
	struct fixture *f = *state;
	struct labour l[6];

	assert_int_equal(worker_new(&f->worker, f->loop, NULL), 0);
	close_gate(f, &l[0]);
	submit_long(f, &l[1], 'A', 1000, 3, 0);
	submit(f, &l[2], 'b', 1000);
	submit(f, &l[3], 'x', 1001);
	submit(f, &l[4], 'y', 1001);
	submit(f, &l[5], '0', 0);
	open_gate(f);
	turn_until_done(f, 6);
	assert_string_equal(f->ran, "Ax0yAAb");
}

/* Even if its user's share has aged meanwhile. */
static void a_work_that_took_long_comes_later(void **state)
{
	struct fixture *f = *state;
	struct labour l[5];

	assert_int_equal(worker_new(&f->worker, f->loop, NULL), 0);
	close_gate(f, &l[0]);
	submit_long(f, &l[1], 'a', 1000, 0, NSEC_PER_SEC);
	submit(f, &l[2], 'b', 1000);
	submit(f, &l[3], 'x', 1001);
	submit(f, &l[4], 'y', 1001);
	open_gate(f);
	turn_until_done(f, 5);
	assert_string_equal(f->ran, "xyab");
}

/* Others without end, each of a new user. */
static void a_work_that_took_long_comes_in_the_end(void **state)
{
	struct fixture *f = *state;
	struct labour l[41];

	assert_int_equal(worker_new(&f->worker, f->loop, NULL), 0);
	close_gate(f, &l[0]);
	submit_long(f, &l[1], 'a', 2020, 0, 200 * NSEC_PER_MSEC - 1);
	for (unsigned i = 2; i < ARRAY_SIZE(l); i++)
		submit(f, &l[i], '.', 2001 + i);
	open_gate(f);
	turn_until_done(f, ARRAY_SIZE(l));
	/* It has waited for half a second when 2020's turn comes. */
	assert_int_equal(strcspn(f->ran, "a"), 17);
}

static void all_slices_are_done_before_the_end(void **state)
{
	struct fixture *f = *state;
	struct labour l[2];

	assert_int_equal(worker_new(&f->worker, f->loop, NULL), 0);
	close_gate(f, &l[0]);
	submit_long(f, &l[1], 'a', 0, 3, 0);
	open_gate(f);
	f->worker = worker_free(f->worker);
	assert_string_equal(f->ran, "aaa");
	assert_int_equal(f->done, 2);
}

static void all_work_is_done_before_the_end(void **state)
{
	struct fixture *f = *state;
	struct labour l[3];

	assert_int_equal(worker_new(&f->worker, f->loop, NULL), 0);
	close_gate(f, &l[0]);
	submit(f, &l[1], 'a', 0);
	submit(f, &l[2], 'b', 0);
	open_gate(f);
	f->worker = worker_free(f->worker);
	assert_string_equal(f->ran, "ab");
	assert_int_equal(f->done, 3);
}

static uint64_t duty_run(struct worker *w, void *userdata)
{
	struct fixture *f = userdata;

	if (atomic_fetch_add(&f->runs, 1) == 2)
		worker_tell(w);
	return now_ns(CLOCK_BOOTTIME) + f->next_ns;
}

static void duty_told(void *userdata)
{
	struct fixture *f = userdata;

	f->told++;
}

static void a_duty_runs_in_time_and_when_there_is_something(void **state)
{
	struct fixture *f = *state;
	struct duty duty = { .fd = f->gate, .run = duty_run, .told = duty_told, .userdata = f };
	unsigned before;
	uint64_t end;

	f->next_ns = 5 * NSEC_PER_MSEC;
	assert_int_equal(worker_new(&f->worker, f->loop, &duty), 0);
	await_runs(f, 5);
	end = now_ns(CLOCK_BOOTTIME) + 20 * NSEC_PER_SEC;
	while (!f->told) {
		assert_true(now_ns(CLOCK_BOOTTIME) < end);
		assert_int_equal(loop_step(f->loop, 10000), 0);
	}
	/* From now on only the descriptor makes it run. */
	f->next_ns = 3600 * NSEC_PER_SEC;
	worker_pause(f->worker, true);
	/* The thread may still be in a run that it began before. */
	do {
		before = f->runs;
		usleep(20000);
	} while (before != f->runs);
	open_gate(f);
	usleep(20000);
	assert_int_equal(f->runs, before);
	worker_pause(f->worker, false);
	await_runs(f, before + 3);
	worker_stop(f->worker, NULL, NULL);
	worker_join(f->worker);
	before = f->runs;
	usleep(20000);
	assert_int_equal(f->runs, before);
}

static void note_end(void *userdata)
{
	struct fixture *f = userdata;

	f->done_at_end = f->done;
	f->told++;
}

static void the_end_is_told_after_all_work(void **state)
{
	struct fixture *f = *state;
	struct labour l[3];

	assert_int_equal(worker_new(&f->worker, f->loop, NULL), 0);
	close_gate(f, &l[0]);
	submit(f, &l[1], 'a', 0);
	submit(f, &l[2], 'b', 0);
	worker_stop(f->worker, note_end, f);
	loop_step(f->loop, 10000);
	assert_int_equal(f->told, 0);
	open_gate(f);
	turn_until_done(f, 3);
	for (int i = 0; i < 2000 && !f->told; i++)
		assert_int_equal(loop_step(f->loop, 10000), 0);
	assert_int_equal(f->told, 1);
	assert_int_equal(f->done_at_end, 3);
}

#define WORKER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKER_TEST(users_take_turns),
		WORKER_TEST(who_took_long_comes_later),
		WORKER_TEST(slices_let_others_in_between),
		WORKER_TEST(a_work_that_took_long_comes_later),
		WORKER_TEST(a_work_that_took_long_comes_in_the_end),
		WORKER_TEST(all_slices_are_done_before_the_end),
		WORKER_TEST(all_work_is_done_before_the_end),
		WORKER_TEST(the_end_is_told_after_all_work),
		WORKER_TEST(a_duty_runs_in_time_and_when_there_is_something),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
