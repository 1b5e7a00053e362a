/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The contract of service/loop.h; built once with each loop. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/service/loop.h"
#include "daemon/service/loop_late.h"
#include "occurrences.h"

#define SHORT_US 20000
#define LONG_US (60 * USEC_PER_SEC)

struct fixture {
	struct loop *loop;
	char order[64]; /* a letter for each call */
};

struct caller {
	struct fixture *f;
	struct loop_source *source, *victim;
	char letter;
	unsigned again; /* number of times that it enables itself again */
	uint32_t revents;
	siginfo_t status;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(loop_new(&f->loop), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	loop_free(f->loop);
	free(f);
	return 0;
}

static void note(struct caller *c)
{
	size_t n = strlen(c->f->order);

	assert_true(n + 1 < sizeof(c->f->order));
	c->f->order[n] = c->letter;
	c->victim = loop_source_free(c->victim);
}

static void on_call(void *userdata)
{
	struct caller *c = userdata;

	note(c);
	if (c->again) {
		c->again--;
		loop_source_enable(c->source, true);
	}
}

static void on_io(void *userdata, int fd _unused_, uint32_t revents)
{
	struct caller *c = userdata;

	c->revents = revents;
	note(c);
}

static void on_child(void *userdata, const siginfo_t *si)
{
	struct caller *c = userdata;

	c->status = *si;
	note(c);
}

static void on_free_self(void *userdata)
{
	struct caller *c = userdata;

	note(c);
	c->source = loop_source_free(c->source);
}

/* Serves what is pending now or within a short time. */
static void turn(struct fixture *f, uint64_t us)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) / NSEC_PER_USEC + us, now;

	while (!loop_has_ended(f->loop) && (now = now_ns(CLOCK_MONOTONIC) / NSEC_PER_USEC) < end)
		assert_int_equal(loop_step(f->loop, end - now), 0);
}

/* Until that many calls were made; a minute is the limit. */
static void turn_until(struct fixture *f, size_t calls)
{
	for (int i = 0; i < 6000 && strlen(f->order) < calls; i++)
		turn(f, 10000);
	assert_int_equal(strlen(f->order), calls);
}

static void make_pipe(int ends[2])
{
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
}

static void close_pipe(int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

static void test_io_is_level_triggered(void **state)
{
	struct fixture *f = *state;
	struct caller a = { .f = f, .letter = 'a' };
	int ends[2];

	make_pipe(ends);
	assert_int_equal(loop_add_io(f->loop, &a.source, ends[0], EPOLLIN, on_io, &a), 0);
	turn(f, SHORT_US);
	assert_string_equal(f->order, "");
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(loop_step(f->loop, LONG_US), 0);
	assert_int_equal(loop_step(f->loop, LONG_US), 0);
	assert_string_equal(f->order, "aa");
	assert_int_equal(a.revents, EPOLLIN);

	assert_int_equal(loop_source_enable(a.source, false), 0);
	assert_int_equal(loop_source_enable(a.source, false), 0);
	turn(f, SHORT_US);
	assert_string_equal(f->order, "aa");
	assert_int_equal(loop_source_enable(a.source, true), 0);
	assert_int_equal(loop_step(f->loop, LONG_US), 0);
	assert_string_equal(f->order, "aaa");
	loop_source_free(a.source);
	close_pipe(ends);
}

static void test_io_events_change(void **state)
{
	struct fixture *f = *state;
	struct caller a = { .f = f, .letter = 'a' };
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(loop_add_io(f->loop, &a.source, ends[0], EPOLLIN, on_io, &a), 0);
	turn(f, SHORT_US);
	assert_string_equal(f->order, "");
	assert_int_equal(loop_io_set_events(a.source, EPOLLIN | EPOLLOUT), 0);
	assert_int_equal(loop_step(f->loop, LONG_US), 0);
	assert_int_equal(a.revents, EPOLLOUT);
	assert_int_equal(loop_io_set_events(a.source, EPOLLIN), 0);
	turn(f, SHORT_US);
	assert_string_equal(f->order, "a");
	close(ends[1]);
	assert_int_equal(loop_step(f->loop, LONG_US), 0);
	assert_true(a.revents & EPOLLHUP);
	loop_source_free(a.source);
	close(ends[0]);
}

static void test_timers_come_in_their_order(void **state)
{
	struct fixture *f = *state;
	struct caller a = { .f = f, .letter = 'a' }, b = { .f = f, .letter = 'b' },
		      c = { .f = f, .letter = 'c' }, d = { .f = f, .letter = 'd' };
	uint64_t last;

	assert_int_equal(loop_add_timer(f->loop, &a.source, CLOCK_MONOTONIC, 0, on_call, &a), 0);
	assert_int_equal(loop_add_timer(f->loop, &b.source, CLOCK_BOOTTIME, 0, on_call, &b), 0);
	assert_int_equal(loop_add_timer(f->loop, &c.source, CLOCK_MONOTONIC, 0, on_call, &c), 0);
	assert_int_equal(loop_add_timer(f->loop, &d.source, CLOCK_MONOTONIC, 0, on_call, &d), 0);
	turn(f, SHORT_US);
	assert_string_equal(f->order, "");

	last = now_ns(CLOCK_MONOTONIC) + 400 * NSEC_PER_MSEC;
	assert_int_equal(loop_timer_in(a.source, 400000), 0);
	assert_int_equal(loop_timer_in(b.source, 200000), 0);
	assert_int_equal(loop_timer_at(c.source, 1), 0);
	assert_int_equal(loop_timer_in(d.source, LONG_US), 0);
	for (int i = 0; i < 6000 && strlen(f->order) < 2; i++)
		turn(f, 10000);
	/* Timers of two clocks that are due at once have no order. */
	if (now_ns(CLOCK_MONOTONIC) < last)
		assert_string_equal(f->order, "cb");
	turn_until(f, 3);
	/* Each is called once; if enabled again, at once, because its time has passed. */
	turn(f, SHORT_US);
	assert_int_equal(strlen(f->order), 3);
	assert_true(strchr(f->order, 'a') && strchr(f->order, 'b'));
	assert_int_equal(loop_source_enable(c.source, true), 0);
	turn_until(f, 4);
	assert_int_equal(f->order[3], 'c');
	assert_int_equal(loop_timer_in(b.source, 1), 0);
	assert_int_equal(loop_source_enable(b.source, false), 0);
	turn(f, SHORT_US);
	assert_int_equal(strlen(f->order), 4);
	loop_source_free(a.source);
	loop_source_free(b.source);
	loop_source_free(c.source);
	loop_source_free(d.source);
}

static void test_timer_moves(void **state)
{
	struct fixture *f = *state;
	struct caller a = { .f = f, .letter = 'a' };

	assert_int_equal(loop_add_timer(f->loop, &a.source, CLOCK_MONOTONIC, 0, on_call, &a), 0);
	assert_int_equal(loop_timer_in(a.source, 1), 0);
	assert_int_equal(loop_timer_in(a.source, LONG_US), 0);
	turn(f, SHORT_US);
	assert_string_equal(f->order, "");
	assert_int_equal(loop_timer_in(a.source, 1), 0);
	turn_until(f, 1);
	loop_source_free(a.source);
}

static void test_important_before_normal(void **state)
{
	struct fixture *f = *state;
	struct caller a = { .f = f, .letter = 'a' }, b = { .f = f, .letter = 'b' };

	assert_int_equal(loop_add_timer(f->loop, &a.source, CLOCK_MONOTONIC, 0, on_call, &a), 0);
	assert_int_equal(loop_add_timer(f->loop, &b.source, CLOCK_MONOTONIC, 0, on_call, &b), 0);
	loop_source_set_priority(b.source, LOOP_IMPORTANT);
	b.again = 3;
	assert_int_equal(loop_timer_at(a.source, 1), 0);
	assert_int_equal(loop_timer_at(b.source, 1), 0);
	turn_until(f, 5);
	assert_string_equal(f->order, "bbbba");
	loop_source_free(a.source);
	loop_source_free(b.source);
}

/* A source that is always pending leaves room for its equals. */
static void test_equals_take_turns(void **state)
{
	struct fixture *f = *state;
	struct caller a = { .f = f, .letter = 'a', .again = 10 },
		      b = { .f = f, .letter = 'b', .again = 10 }, c = { .f = f, .letter = 'c' };
	int ends[2];

	make_pipe(ends);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(loop_add_timer(f->loop, &a.source, CLOCK_MONOTONIC, 0, on_call, &a), 0);
	assert_int_equal(loop_add_timer(f->loop, &b.source, CLOCK_MONOTONIC, 0, on_call, &b), 0);
	assert_int_equal(loop_add_io(f->loop, &c.source, ends[0], EPOLLIN, on_io, &c), 0);
	assert_int_equal(loop_timer_at(a.source, 0), 0);
	assert_int_equal(loop_timer_at(b.source, 0), 0);
	for (int i = 0; i < 9; i++)
		assert_int_equal(loop_step(f->loop, LONG_US), 0);
	/* Whichever was first: any three consecutive calls have all three. */
	for (const char *p = f->order; p < f->order + 7; p++) {
		assert_true(memchr(p, 'a', 3) && memchr(p, 'b', 3) && memchr(p, 'c', 3));
	}
	loop_source_free(a.source);
	loop_source_free(b.source);
	loop_source_free(c.source);
	close_pipe(ends);
}

static void test_deferred_once(void **state)
{
	struct fixture *f = *state;
	struct caller a = { .f = f, .letter = 'a' };

	assert_int_equal(loop_add_deferred(f->loop, &a.source, on_call, &a), 0);
	turn(f, SHORT_US);
	assert_string_equal(f->order, "");
	assert_int_equal(loop_source_enable(a.source, true), 0);
	assert_int_equal(loop_source_enable(a.source, true), 0);
	turn_until(f, 1);
	turn(f, SHORT_US);
	assert_string_equal(f->order, "a");
	assert_int_equal(loop_source_enable(a.source, true), 0);
	assert_int_equal(loop_source_enable(a.source, false), 0);
	turn(f, SHORT_US);
	assert_string_equal(f->order, "a");
	loop_source_free(a.source);
}

static void test_callbacks_free(void **state)
{
	struct fixture *f = *state;
	struct caller a = { .f = f, .letter = 'a' }, b = { .f = f, .letter = 'b' };
	int ends[2];

	make_pipe(ends);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(loop_add_io(f->loop, &b.source, ends[0], EPOLLIN, on_io, &b), 0);
	assert_int_equal(loop_add_timer(f->loop, &a.source, CLOCK_MONOTONIC, 0, on_free_self, &a),
			 0);
	loop_source_set_priority(a.source, LOOP_IMPORTANT);
	assert_int_equal(loop_timer_at(a.source, 0), 0);
	/* b is ready as well; a frees it before it is served. */
	a.victim = b.source;
	turn_until(f, 1);
	turn(f, SHORT_US);
	assert_string_equal(f->order, "a");
	assert_null(a.source);
	close_pipe(ends);
}

static void on_exit_call(void *userdata)
{
	loop_exit(userdata, -EPIPE);
}

static void test_exit(void **state)
{
	struct fixture *f = *state;
	struct loop_source *s;

	assert_false(loop_has_ended(f->loop));
	assert_int_equal(loop_add_timer(f->loop, &s, CLOCK_BOOTTIME, 0, on_exit_call, f->loop), 0);
	assert_int_equal(loop_timer_in(s, 1000), 0);
	assert_int_equal(loop_run(f->loop), -EPIPE);
	assert_true(loop_has_ended(f->loop));
	loop_source_free(s);
}

static void test_signals(void **state)
{
	struct fixture *f = *state;
	struct caller a = { .f = f, .letter = 'a' }, b = { .f = f, .letter = 'b' };

	assert_int_equal(loop_add_signal(f->loop, SIGUSR1, on_call, &a), 0);
	assert_int_equal(loop_add_signal(f->loop, SIGUSR2, on_call, &b), 0);
	turn(f, SHORT_US);
	kill(getpid(), SIGUSR2);
	turn_until(f, 1);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGUSR2);
	turn_until(f, 3);
	assert_true(strchr(f->order, 'a') && strcmp(f->order, "bbb") != 0);
}

static pid_t start_child(int status)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0 && status < 0)
		pause();
	if (pid == 0)
		_exit(status);
	return pid;
}

static void test_children(void **state)
{
	struct fixture *f = *state;
	struct caller a = { .f = f, .letter = 'a' }, b = { .f = f, .letter = 'b' },
		      c = { .f = f, .letter = 'c' };
	pid_t lasting = start_child(-1), killed = start_child(-1);
	const struct timespec while_it_ends = { .tv_nsec = 50 * 1000 * 1000 };
	siginfo_t si;

	assert_int_equal(loop_add_child(f->loop, &b.source, lasting, on_child, &b), 0);
	assert_int_equal(loop_add_child(f->loop, &c.source, killed, on_child, &c), 0);
	assert_int_equal(loop_add_child(f->loop, &a.source, start_child(7), on_child, &a), 0);
	turn_until(f, 1);
	assert_string_equal(f->order, "a");
	assert_int_equal(a.status.si_code, CLD_EXITED);
	assert_int_equal(a.status.si_status, 7);
	loop_source_free(a.source);

	/* A child that ended before the loop watches it. */
	a.letter = 'd';
	lasting = start_child(8);
	nanosleep(&while_it_ends, NULL);
	assert_int_equal(loop_add_child(f->loop, &a.source, lasting, on_child, &a), 0);
	turn_until(f, 2);
	assert_int_equal(a.status.si_status, 8);
	loop_source_free(a.source);

	kill(killed, SIGKILL);
	turn_until(f, 3);
	assert_string_equal(f->order, "adc");
	assert_int_equal(c.status.si_code, CLD_KILLED);
	assert_int_equal(c.status.si_status, SIGKILL);
	loop_source_free(c.source);
	/* Nobody waits for b any more: the loop kills it, and reaps it when it has ended. */
	loop_source_free(b.source);
	for (int i = 0; i < 3000 && waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0; i++)
		turn(f, SHORT_US);
	assert_int_equal(waitid(P_ALL, 0, &si, WEXITED | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_string_equal(f->order, "adc");
}

/* Reads at once, because a sender waits while the queue is full. */
static void on_message(void *userdata, int fd, uint32_t revents _unused_)
{
	unsigned *told = userdata;
	char text[64] = "";

	assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
	assert_int_equal(strncmp(text, "WATCHDOG=1", 10), 0);
	++*told;
}

static void test_watchdog(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	char dir[] = "/tmp/traced-test-XXXXXX";
	struct loop_source *hears;
	unsigned told = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_non_null(mkdtemp(dir));
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/notify", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(loop_add_io(f->loop, &hears, fd, EPOLLIN, on_message, &told), 0);
	/* Without a request in the environment the loop sends nothing. */
	assert_int_equal(loop_serve_watchdog(f->loop), 0);
	setenv("NOTIFY_SOCKET", sa.sun_path, 1);
	setenv("WATCHDOG_USEC", "200000", 1);
	assert_int_equal(loop_serve_watchdog(f->loop), 0);
	for (int i = 0; i < 6000 && told < 3; i++)
		turn(f, 10000);
	assert_true(told >= 3);
	loop_source_free(hears);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unlink(sa.sun_path);
	rmdir(dir);
	close(fd);
}

static void on_slow_call(void *userdata)
{
	const struct timespec time = { .tv_nsec = 150 * 1000 * 1000 };

	loop_doing("the request", "stop of uid 7");
	loop_late_look();
	nanosleep(&time, NULL);
	/* Another thread calls it like this. */
	loop_late_look();
	loop_late_look();
	on_call(userdata);
}

static void test_a_long_callback_is_logged(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct fixture *f = *state;
	struct caller a = { .f = f, .letter = 'a' }, b = { .f = f, .letter = 'b' };
	int kept = dup(STDERR_FILENO), file = memfd_create("stderr", MFD_CLOEXEC);

	assert_true(kept >= 0 && file >= 0);
	assert_true(dup2(file, STDERR_FILENO) >= 0);
	assert_int_equal(loop_add_deferred(f->loop, &b.source, on_call, &b), 0);
	assert_int_equal(loop_source_enable(b.source, true), 0);
	turn_until(f, 1);
	assert_int_equal(lseek(file, 0, SEEK_END), 0);
	assert_int_equal(loop_add_deferred(f->loop, &a.source, on_slow_call, &a), 0);
	assert_int_equal(loop_source_enable(a.source, true), 0);
	turn_until(f, 2);
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	buf_reserve(&text, 1000);
	text.len = (size_t)pread_full(file, text.data, 1000, 0);
	loop_late_look();
	/* Once while it runs, and once afterwards. Other programs may make it longer. */
	assert_int_equal(occurrences(buf_string(&text), "the event loop has been busy for "), 1);
	assert_non_null(strstr(text.data, " ms with the request stop of uid 7\n"));
	assert_non_null(strstr(buf_string(&text), "the event loop took "));
	assert_non_null(strstr(text.data, " ms for the request stop of uid 7\n"));
	loop_source_free(a.source);
	loop_source_free(b.source);
	close(kept);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_io_is_level_triggered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_io_events_change, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timers_come_in_their_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timer_moves, setup, teardown),
		cmocka_unit_test_setup_teardown(test_important_before_normal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_equals_take_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deferred_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_callbacks_free, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_children, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_long_callback_is_logged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watchdog, setup, teardown),
	};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
