/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The beginning and the end of recordings. */
#include "service_harness.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/service/job.h"
#include "daemon/service/session.h"
#include "traced/stream.h"

/* A filter of system calls refuses pidfd_send_signal(). */
static bool pidfd_refused;

long __real_syscall(long number, long a, long b, long c, long d, long e);
long __wrap_syscall(long number, long a, long b, long c, long d, long e);

long __wrap_syscall(long number, long a, long b, long c, long d, long e)
{
	if (number != SYS_pidfd_send_signal || !pidfd_refused)
		return __real_syscall(number, a, b, c, d, e);
	errno = EPERM;
	return -1;
}

static void a_duration_ends_it_for_who_waits(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;
	Reply *reply;

	greet(d, &c);
	done_with(start(d, &c, "a", false, false, 80));
	tell(&c, attach_request("a", "txt"), out);
	reply = hear(d, &c);
	assert_null(reply->error);
	assert_true(reply->finished->session->elapsed_ns >= 80 * NSEC_PER_MSEC);
	done_with(reply);
	assert_output(out, STREAM_MAGIC "end 1");
	client_close(&c);
	close(out);
}

static void what_ended_by_itself_waits_to_be_fetched(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c, other;
	Reply *reply;

	greet(d, &c);
	done_with(start(d, &c, "a", true, false, 20));
	client_close(&c);
	turn_until(d, TAILQ_FIRST(&d->manager->sessions)->state == SESSION_STOPPED);
	await_captures(d, 0);
	greet(d, &other);
	/* Counts only: the recording stays. */
	reply = ask(d, &other, attach_request("a", NULL), -1);
	assert_null(reply->error);
	assert_null(reply->finished->result);
	done_with(reply);
	reply = ask(d, &other, stop_request("a", "txt"), out);
	assert_null(reply->error);
	done_with(reply);
	assert_output(out, STREAM_MAGIC "end 1");
	client_close(&other);
	close(out);
}

static void a_detached_session_outlives_who_waits_for_it(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC), unused = memfd_create("unused", MFD_CLOEXEC);
	struct client c, other;
	Request *stop;
	Reply *reply;

	greet(d, &c);
	greet(d, &other);
	start_ok(d, &c, "a", true);
	tell(&c, attach_request("a", NULL), -1);
	tell(&c, attach_request("a", "txt"), unused);
	tell(&c, attach_request("a", NULL), -1);
	tell(&other, attach_request("a", "txt"), out);
	turn(d, 20);
	client_close(&c);
	turn(d, 20);
	await_captures(d, 1);
	/* A Stop without output ends it; who gave an output gets it. */
	stop = stop_request("a", NULL);
	tell(&other, stop, -1);
	for (int i = 0; i < 2; i++) {
		reply = hear(d, &other);
		assert_null(reply->error);
		assert_true(!reply->finished->result == (reply->id == stop->id));
		done_with(reply);
	}
	assert_output(out, STREAM_MAGIC "end 0");
	assert_output(unused, "");
	turn_until(d, d->manager->session_count == 0);
	assert_int_equal(spool_files(d, false), 0);
	client_close(&other);
	close(out);
	close(unused);
}

static void two_at_once_and_no_two_of_a_name(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	start_ok(d, &c, "b", false);
	assert_error(start(d, &c, "a", false, false, 0), EEXIST, "\"a\"");
	assert_error(start(d, &c, "../x", false, false, 0), EINVAL, "../x");
	await_captures(d, 2);
	client_close(&c);
	turn(d, 20);
	/* Nobody had asked for them to be written. */
	await_captures(d, 0);
	assert_int_equal(spool_files(d, false), 0);
}

static void a_full_spool_ends_it_with_what_there_is(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;
	Reply *reply;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	fakes.dispatch_error = -ENOSPC;
	feed();
	turn(d, 20);
	await_captures(d, 0);
	reply = ask(d, &c, stop_request("a", "txt"), out);
	assert_null(reply->error);
	assert_non_null(strstr(reply->finished->session->warnings[1], "ended early"));
	done_with(reply);
	assert_output(out, STREAM_MAGIC "end 6");

	/* The daemon's own limit: before the file system's. */
	fakes.dispatch_error = 0;
	d->manager->config.spool_max = 40;
	start_ok(d, &c, "a", false);
	for (int i = 0; i < 4000 && captures(); i++) {
		feed();
		turn(d, 5);
	}
	await_captures(d, 0);
	assert_int_equal(ftruncate(out, 0), 0);
	assert_int_equal(lseek(out, 0, SEEK_SET), 0);
	reply = ask(d, &c, stop_request("a", "txt"), out);
	assert_null(reply->error);
	assert_non_null(strstr(reply->finished->session->warnings[1], "spool_max"));
	done_with(reply);
	client_close(&c);
	close(out);
}

static void a_start_that_fails_leaves_nothing(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	fakes.new_error = -ENOENT;
	assert_error(start(d, &c, "a", false, false, 0), ENOENT, "no such event");
	fakes.new_error = 0;
	fakes.start_error = -ENOMEM;
	assert_error(start(d, &c, "a", false, false, 0), ENOMEM, "can't start");
	fakes.start_error = 0;
	d->manager->config.min_free = UINT64_MAX;
	assert_error(start(d, &c, "a", false, false, 0), ENOSPC, "make room");
	d->manager->config.min_free = 0;
	d->manager->config.duration_max = NSEC_PER_SEC;
	assert_error(start(d, &c, "a", false, false, 2000), EINVAL, "longest");
	d->manager->config.duration_max = 0;
	/* 2^63 ns and a little: with a clock reading added, it would begin anew. */
	assert_error(start(d, &c, "a", false, false, UINT64_C(9223372036855)), EINVAL, "century");
	assert_error(start_filtered(d, &c, "sched\033[2J", ""), EINVAL, "control character");
	assert_error(start_filtered(d, &c, "sched", "prio\n== 1"), EINVAL, "0x0a");
	await_captures(d, 0);
	assert_int_equal(spool_files(d, false), 0);
	assert_int_equal(d->manager->session_count, 0);
	d->manager->config.sessions = 1;
	/* Root may have four more than users together. */
	for (int i = 0; i < 5; i++)
		done_with(start(d, &c, "", false, false, 0));
	assert_int_equal(d->manager->session_count, 5);
	assert_error(start(d, &c, "b", false, false, 0), EUSERS, "limit");
	client_close(&c);
}

/* They are in everybody's list of sessions. */
static void conditions_are_bounded(void **state)
{
	Traced__Control__Start request = TRACED__CONTROL__START__INIT;
	char longest[1024 + 2], *conditions[17];
	struct daemon *d = *state;
	struct client c;
	REQUEST(message, START, start, request);

	greet(d, &c);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(conditions); i++)
		conditions[i] = longest + 1;
	request.name = (char *)"a";
	request.conditions = conditions;
	request.n_conditions = 17;
	assert_error(ask(d, &c, &message, -1), E2BIG, "more than 16 conditions");
	request.n_conditions = 16;
	conditions[15] = longest;
	assert_error(ask(d, &c, &message, -1), E2BIG, "more than 1024 bytes");
	conditions[15]++;
	done_with(ask(d, &c, &message, -1));
	assert_int_equal(d->manager->session_count, 1);
	client_close(&c);
}

static void a_flight_recorder_gives_snapshots(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;
	Reply *reply;

	greet(d, &c);
	done_with(start(d, &c, "ring", true, true, 0));
	assert_int_equal(spool_files(d, false), 0);
	reply = ask(d, &c, snapshot_request("ring", "txt"), out);
	assert_null(reply->error);
	assert_int_equal(reply->finished->session->state,
			 TRACED__CONTROL__SESSION__STATE__RECORDING);
	done_with(reply);
	assert_output(out, STREAM_MAGIC "snapshot 3");
	await_captures(d, 1);
	assert_int_equal(ftruncate(out, 0), 0);
	assert_int_equal(lseek(out, 0, SEEK_SET), 0);
	reply = ask(d, &c, stop_request("ring", "txt"), out);
	assert_null(reply->error);
	done_with(reply);
	assert_output(out, STREAM_MAGIC "snapshot 0");
	client_close(&c);
	close(out);
}

static void others_give_what_they_have(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;
	Reply *reply;

	greet(d, &c);
	start_ok(d, &c, "plain", false);
	for (int i = 0; i < 2; i++) {
		reply = ask(d, &c, snapshot_request("plain", "txt"), out);
		assert_null(reply->error);
		assert_int_equal(reply->finished->session->state,
				 TRACED__CONTROL__SESSION__STATE__RECORDING);
		done_with(reply);
		assert_true(lseek(out, 0, SEEK_END) > 0);
		assert_int_equal(spool_files(d, false), 1);
	}
	reply = ask(d, &c, stop_request("plain", "txt"), out);
	assert_null(reply->error);
	done_with(reply);
	assert_error(ask(d, &c, snapshot_request("plain", "txt"), out), ENOENT, "no session");
	client_close(&c);
	close(out);
}

static void a_ring_that_never_runs_dry_starves_nobody(void **state)
{
	const int before = getpriority(PRIO_PROCESS, 0);
	struct daemon *d = *state;
	struct client c;
	uint64_t begin, took;
	int tries = 0;

	/* The daemon's loop has it, beside the reader's -10. Not every user may. */
	setpriority(PRIO_PROCESS, 0, -5);
	greet(d, &c);
	start_ok(d, &c, "a", false);
	fakes.always_more = true;
	feed();
	turn_until(d, fakes.dispatches > 100);
	/* Other programs take longer from it, but not always. */
	do {
		begin = now_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < 20; i++)
			done_with(ask(d, &c, status_request(), -1));
		took = now_ns(CLOCK_MONOTONIC) - begin;
	} while (took >= 2 * NSEC_PER_SEC && ++tries < 5);
	assert_true(took < 2 * NSEC_PER_SEC);
	client_close(&c);
	setpriority(PRIO_PROCESS, 0, before);
}

/* Callers may still hold a session or job that is over; only the loop frees it. */
static void an_end_frees_nothing_before_the_loop_goes_on(void **state)
{
	struct daemon *d = *state;
	struct manager *m = d->manager;
	struct session *s;
	struct client c;
	struct job *j;

	greet(d, &c);
	start_ok(d, &c, "a", true);
	tell(&c, attach_request("a", NULL), -1);
	turn_until(d, m->job_count == 1);
	s = manager_find_session(m, geteuid(), "a");
	j = TAILQ_FIRST(&s->jobs);
	turn_until(d, TAILQ_EMPTY(&m->over.jobs));
	session_cancel(s, "a test ends it");
	assert_int_equal(s->state, SESSION_OVER);
	assert_true(j->over && !j->session && !j->connection);
	assert_ptr_equal(TAILQ_FIRST(&m->over.sessions), s);
	assert_ptr_equal(TAILQ_FIRST(&m->over.jobs), j);
	assert_null(manager_find_session(m, geteuid(), "a"));
	/* A second end changes nothing. */
	session_cancel(s, "a test ends it again");
	session_end(s, CAPTURE_END_STOPPED);
	job_over(j);
	assert_int_equal(m->session_count, 0);
	assert_int_equal(m->job_count, 0);
	assert_error(hear(d, &c), ECANCELED, "a test ends it");
	turn_until(d, TAILQ_EMPTY(&m->over.sessions) && TAILQ_EMPTY(&m->over.jobs));
	client_close(&c);
	turn_until(d, m->connection_count == 0);
	turn_until(d, TAILQ_EMPTY(&m->over.connections));
}

static void no_tracefs_is_an_answer(void **state)
{
	struct daemon *d = *state;
	struct client c;

	d->manager->options.tracefs = "/nowhere";
	greet(d, &c);
	assert_error(start(d, &c, "a", false, false, 0), ENODEV, "no tracefs");
	assert_int_equal(spool_files(d, false), 0);
	client_close(&c);
}

static void arming_holds_nobody_up(void **state)
{
	struct daemon *d = *state;
	struct client c, other;
	uint64_t id;
	Reply *reply;

	greet(d, &c);
	greet(d, &other);
	id = tell_start(d, &c, "a", false, false);
	reply = ask(d, &other, status_request(), -1);
	assert_null(reply->error);
	assert_int_equal(reply->status->n_sessions, 1);
	assert_string_equal(reply->status->sessions[0]->name, "a");
	assert_int_equal(reply->status->sessions[0]->state,
			 TRACED__CONTROL__SESSION__STATE__ARMING);
	done_with(reply);
	assert_error(start(d, &other, "a", false, false, 0), EEXIST, "\"a\"");
	reply = hear(d, &c);
	assert_int_equal(reply->id, id);
	assert_non_null(reply->session);
	assert_int_equal(reply->session->state, TRACED__CONTROL__SESSION__STATE__RECORDING);
	done_with(reply);
	client_close(&c);
	client_close(&other);
	await_captures(d, 0);
}

static void a_stop_while_arming_ends_it_once_armed(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c, other;
	Reply *reply;

	greet(d, &c);
	greet(d, &other);
	tell_start(d, &c, "a", true, false);
	tell(&other, attach_request("a", NULL), -1);
	tell(&other, stop_request("a", "txt"), out);
	for (int i = 0; i < 2; i++) {
		reply = hear(d, &other);
		assert_non_null(reply->finished);
		done_with(reply);
	}
	assert_output(out, STREAM_MAGIC "end 0");
	reply = hear(d, &c);
	assert_non_null(reply->session);
	done_with(reply);
	client_close(&c);
	client_close(&other);
	await_captures(d, 0);
	assert_int_equal(spool_files(d, false), 0);
	close(out);
}

/* The reply to a Start that settles, which comes before the capture's start. */
static Reply *start_settled(struct daemon *d, struct client *c, uint64_t duration_ms)
{
	Traced__Control__Start start = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, start);

	start.name = (char *)"a";
	start.attach = start.settle = true;
	start.duration_ns = duration_ms * NSEC_PER_MSEC;
	return ask(d, c, &request, -1);
}

static void a_client_may_be_told_before_the_start(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct session *s;
	struct client c;
	Reply *reply;

	greet(d, &c);
	done_with(start_settled(d, &c, 80));
	s = TAILQ_FIRST(&d->manager->sessions);
	assert_true(s->settles);
	turn_until(d, !s->begin);
	assert_true(session_records(s));
	reply = hear(d, &c);
	assert_null(reply->error);
	assert_true(reply->finished->session->elapsed_ns >= 80 * NSEC_PER_MSEC);
	done_with(reply);
	reply = ask(d, &c, stop_request("a", "txt"), out);
	assert_null(reply->error);
	done_with(reply);
	assert_output(out, STREAM_MAGIC "end 1");
	client_close(&c);
	close(out);
}

static void a_stop_before_the_start_ends_it_at_once(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;
	Reply *reply;

	greet(d, &c);
	d->manager->settle_us = 1000000;
	done_with(start_settled(d, &c, 0));
	tell(&c, stop_request("a", "txt"), out);
	for (int i = 0; i < 2; i++) {
		reply = hear(d, &c);
		assert_non_null(reply->finished);
		done_with(reply);
	}
	assert_output(out, STREAM_MAGIC "end 0");
	client_close(&c);
	await_captures(d, 0);
	close(out);
}

static void a_start_may_fail_after_the_reply(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	fakes.start_error = -ENOMEM;
	done_with(start_settled(d, &c, 0));
	/* Cancelled: there is nothing to fetch. */
	assert_error(hear(d, &c), ECANCELED, "can't start");
	fakes.start_error = 0;
	await_captures(d, 0);
	assert_int_equal(spool_files(d, false), 0);
	assert_int_equal(d->manager->session_count, 0);
	client_close(&c);
}

static void who_is_told_before_the_start_may_go(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	d->manager->settle_us = 1000000;
	done_with(start_settled(d, &c, 0));
	client_close(&c);
	await_captures(d, 0);
	assert_int_equal(spool_files(d, false), 0);
}

/* Sends a Start of a held command with these descriptors. */
static void tell_held(struct client *c, const int *fds, size_t fd_count)
{
	Traced__Control__Start start = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, start);

	start.name = (char *)"a";
	start.attach = start.settle = start.held = true;
	assert_int_equal(frame_queue(&c->io, &request.base, fds, fd_count), 0);
	assert_int_equal(frame_flush(&c->io), 0);
}

/* A process that a client holds: it ends after the go, or without it by another status. */
struct held {
	pid_t pid;
	int go, end;
};

static void hold(struct held *h)
{
	int pair[2];
	char go;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	h->pid = fork();
	assert_true(h->pid >= 0);
	if (!h->pid) {
		close(pair[1]);
		_exit(read(pair[0], &go, 1) == 1 ? 0 : 1);
	}
	close(pair[0]);
	h->go = pair[1];
	h->end = (int)syscall(SYS_pidfd_open, h->pid, 0);
	if (h->end < 0)
		skip();
}

static bool held_has_ended(const struct held *h)
{
	siginfo_t info = { 0 };

	assert_int_equal(waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid == h->pid;
}

/* Returns its exit status. */
static int held_status(struct held *h)
{
	int status;

	close(h->go);
	close(h->end);
	assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_recording_begins_and_ends_with_its_command(void **state)
{
	struct daemon *d = *state;
	struct session *s;
	struct client c;
	struct held h;
	Reply *reply;

	greet(d, &c);
	hold(&h);
	d->manager->settle_us = 1000000;
	tell_held(&c, (int[]){ h.go, h.end }, 2);
	reply = hear(d, &c);
	assert_null(reply->error);
	done_with(reply);
	/* Held until the recording has begun. */
	s = TAILQ_FIRST(&d->manager->sessions);
	assert_non_null(s->begin);
	assert_int_equal(waitpid(h.pid, NULL, WNOHANG), 0);
	reply = hear(d, &c);
	assert_null(reply->error);
	assert_true(reply->finished->session->command_exited);
	done_with(reply);
	assert_int_equal(held_status(&h), 0);
	client_close(&c);
	await_captures(d, 0);
}

static void a_command_is_not_released_without_a_recording(void **state)
{
	struct daemon *d = *state;
	struct client c;
	struct held h;

	greet(d, &c);
	hold(&h);
	fakes.start_error = -ENOMEM;
	tell_held(&c, (int[]){ h.go, h.end }, 2);
	done_with(hear(d, &c));
	assert_error(hear(d, &c), ECANCELED, "can't start");
	fakes.start_error = 0;
	await_captures(d, 0);
	/* It ends though its client still has the socket. */
	for (int i = 0; i < 5000 && !held_has_ended(&h); i++)
		turn(d, 1);
	assert_true(held_has_ended(&h));
	assert_int_equal(held_status(&h), 1);
	client_close(&c);
}

/* The output's descriptor comes behind the command's. */
static void a_command_is_not_released_without_its_stream(void **state)
{
	Traced__Control__Output output = TRACED__CONTROL__OUTPUT__INIT;
	Traced__Control__Start start = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, start);
	int out = memfd_create("out", MFD_CLOEXEC);
	struct daemon *d = *state;
	struct client c;
	struct held h;

	greet(d, &c);
	hold(&h);
	output.format = (char *)"fail";
	output.stream = true;
	start.name = (char *)"a";
	start.stream = start.follow = start.held = true;
	start.output = &output;
	assert_int_equal(frame_queue(&c.io, &request.base, (int[]){ h.go, h.end, out }, 3), 0);
	assert_int_equal(frame_flush(&c.io), 0);
	assert_error(hear(d, &c), ENOSPC, "make room");
	await_captures(d, 0);
	for (int i = 0; i < 5000 && !held_has_ended(&h); i++)
		turn(d, 1);
	assert_true(held_has_ended(&h));
	assert_int_equal(held_status(&h), 1);
	assert_int_equal(spool_files(d, false), 0);
	client_close(&c);
	close(out);
}

/* It may end while the recording is prepared. */
static void a_held_command_may_be_killed(void **state)
{
	struct daemon *d = *state;
	struct client c;
	struct held h;
	Reply *reply;

	greet(d, &c);
	hold(&h);
	shutdown(h.go, SHUT_RDWR);
	d->manager->settle_us = 1000000;
	tell_held(&c, (int[]){ h.go, h.end }, 2);
	done_with(hear(d, &c));
	reply = hear(d, &c);
	assert_true(reply->finished->session->command_exited);
	done_with(reply);
	assert_int_equal(held_status(&h), 1);
	client_close(&c);
	await_captures(d, 0);
}

static void descriptors_of_a_command_are_checked(void **state)
{
	struct daemon *d = *state;
	int file = memfd_create("file", MFD_CLOEXEC), pipes[2], datagrams[2];
	struct client c;
	struct held h;

	greet(d, &c);
	hold(&h);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, datagrams), 0);
	tell_held(&c, NULL, 0);
	assert_error(hear(d, &c), EINVAL, "two descriptors");
	tell_held(&c, &h.go, 1);
	assert_error(hear(d, &c), EINVAL, "two descriptors");
	for (size_t i = 0; i < 3; i++) {
		tell_held(&c, (int[]){ ((int[]){ file, pipes[1], datagrams[0] })[i], h.end }, 2);
		assert_error(hear(d, &c), EBADF, "unix stream socket");
	}
	tell_held(&c, (int[]){ h.go, file }, 2);
	assert_error(hear(d, &c), EBADF, "pidfd");
	pidfd_refused = true;
	tell_held(&c, (int[]){ h.go, file }, 2);
	assert_error(hear(d, &c), EBADF, "pidfd");
	pidfd_refused = false;
	assert_int_equal(d->manager->session_count, 0);
	assert_int_equal(spool_files(d, false), 0);
	assert_int_equal(held_status(&h), 1);
	for (int i = 0; i < 2; i++) {
		close(pipes[i]);
		close(datagrams[i]);
	}
	close(file);
	client_close(&c);
}

static void who_asked_for_it_may_go_while_it_is_armed(void **state)
{
	struct daemon *d = *state;
	struct client c, other;

	greet(d, &c);
	greet(d, &other);
	tell_start(d, &c, "a", false, false);
	client_close(&c);
	turn_until(d, d->manager->session_count == 0);
	/* Its name is free; the other's instance is gone before a new one is made. */
	tell_start(d, &other, "a", true, true);
	assert_error(ask(d, &other, snapshot_request("a", NULL), -1), EAGAIN,
		     "does not record yet");
	tell(&other, cancel_request("a"), -1);
	assert_error(hear(d, &other), ECANCELED, "cancelled");
	done_with(hear(d, &other));
	turn(d, 500);
	await_captures(d, 0);
	assert_int_equal(spool_files(d, false), 0);
	client_close(&other);
}

/* At once: what undoes it waits for its turn. */
static void a_cancelled_recording_is_turned_off(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	start_ok(d, &c, "a", true);
	fakes.turned_off = 0;
	session_cancel(manager_find_session(d->manager, geteuid(), "a"), "a test ends it");
	assert_int_equal(fakes.turned_off, 1);
	client_close(&c);
	await_captures(d, 0);
}

static void arming_that_fails_is_told_to_all(void **state)
{
	struct daemon *d = *state;
	struct client c, other;

	greet(d, &c);
	greet(d, &other);
	fakes.new_error = -ENOENT;
	tell_start(d, &c, "a", true, false);
	assert_error(ask(d, &other, stop_request("a", NULL), -1), ENOENT, "no such event");
	assert_error(hear(d, &c), ENOENT, "no such event");
	assert_int_equal(d->manager->session_count, 0);
	assert_int_equal(spool_files(d, false), 0);
	client_close(&c);
	client_close(&other);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SERVICE_TEST(a_duration_ends_it_for_who_waits),
		SERVICE_TEST(what_ended_by_itself_waits_to_be_fetched),
		SERVICE_TEST(a_detached_session_outlives_who_waits_for_it),
		SERVICE_TEST(two_at_once_and_no_two_of_a_name),
		SERVICE_TEST(a_full_spool_ends_it_with_what_there_is),
		SERVICE_TEST(a_start_that_fails_leaves_nothing),
		SERVICE_TEST(conditions_are_bounded),
		SERVICE_TEST(a_flight_recorder_gives_snapshots),
		SERVICE_TEST(others_give_what_they_have),
		SERVICE_TEST(a_ring_that_never_runs_dry_starves_nobody),
		SERVICE_TEST(an_end_frees_nothing_before_the_loop_goes_on),
		SERVICE_TEST(no_tracefs_is_an_answer),
		SERVICE_TEST(arming_holds_nobody_up),
		SERVICE_TEST(a_stop_while_arming_ends_it_once_armed),
		SERVICE_TEST(a_client_may_be_told_before_the_start),
		SERVICE_TEST(a_stop_before_the_start_ends_it_at_once),
		SERVICE_TEST(a_start_may_fail_after_the_reply),
		SERVICE_TEST(who_is_told_before_the_start_may_go),
		SERVICE_TEST(a_recording_begins_and_ends_with_its_command),
		SERVICE_TEST(a_command_is_not_released_without_a_recording),
		SERVICE_TEST(a_command_is_not_released_without_its_stream),
		SERVICE_TEST(a_held_command_may_be_killed),
		SERVICE_TEST(descriptors_of_a_command_are_checked),
		SERVICE_TEST(who_asked_for_it_may_go_while_it_is_armed),
		SERVICE_TEST(a_cancelled_recording_is_turned_off),
		SERVICE_TEST(arming_that_fails_is_told_to_all),
	};
	int r = service_test_begin(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
