/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A recording's thread: what the loop does never delays it, and it never delays the loop. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "service_harness.h"
#include "traced/stream.h"

static void pause_ms(unsigned ms)
{
	usleep(ms * 1000);
}

/* The recording's thread waits at the gate. */
static void await_gate(struct daemon *d)
{
	turn_until(d, fakes.at_gate > 0);
}

/* Closes a client's connection, and waits until the daemon knows. */
static void leave(struct daemon *d, struct client *c)
{
	unsigned before = d->manager->connection_count;

	client_close(c);
	turn_until(d, d->manager->connection_count < before);
}

/* The state that others see, or -1: no session. */
static int seen_state(struct daemon *d, struct client *c)
{
	Reply *reply = ask(d, c, status_request(), -1);
	int state = reply->status->n_sessions ? (int)reply->status->sessions[0]->state : -1;

	assert_null(reply->error);
	done_with(reply);
	return state;
}

static void cancel(struct daemon *d, struct client *c, const char *name)
{
	Reply *reply = ask(d, c, cancel_request(name), -1);

	assert_null(reply->error);
	done_with(reply);
}

static void rings_are_read_while_the_loop_is_held_up(void **state)
{
	struct daemon *d = *state;
	struct client c;
	unsigned before;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	turn(d, 10);
	before = fakes.dispatches;
	for (int i = 0; i < 1000 && fakes.dispatches == before; i++) {
		feed();
		pause_ms(50); /* the loop does not turn */
	}
	assert_true(fakes.dispatches > before);
	client_close(&c);
}

static void a_long_snapshot_holds_nobody_up(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c, other;
	Reply *reply;

	greet(d, &c);
	greet(d, &other);
	done_with(start(d, &c, "ring", true, true, 0));
	fakes.gate_closed = true;
	tell(&c, snapshot_request("ring", "txt"), out);
	await_gate(d);
	assert_int_equal(seen_state(d, &other), TRACED__CONTROL__SESSION__STATE__RECORDING);
	assert_output(out, "");
	fakes.gate_closed = false;
	reply = hear(d, &c);
	assert_null(reply->error);
	done_with(reply);
	assert_output(out, STREAM_MAGIC "snapshot 3");
	client_close(&c);
	client_close(&other);
	close(out);
}

static void a_long_end_holds_nobody_up(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC), again = memfd_create("again", MFD_CLOEXEC);
	struct client c, other;
	Reply *reply;

	greet(d, &c);
	greet(d, &other);
	start_ok(d, &c, "a", true);
	fakes.gate_closed = true;
	tell(&c, stop_request("a", "txt"), out);
	await_gate(d);
	/* A client that asks now waits for the end, too. */
	tell(&other, attach_request("a", "txt"), again);
	assert_int_equal(seen_state(d, &other), TRACED__CONTROL__SESSION__STATE__DRAINING);
	fakes.gate_closed = false;
	reply = hear(d, &c);
	assert_null(reply->error);
	done_with(reply);
	reply = hear(d, &other);
	assert_null(reply->error);
	done_with(reply);
	assert_output(out, STREAM_MAGIC "end 0");
	assert_output(again, STREAM_MAGIC "end 0");
	turn_until(d, d->manager->session_count == 0);
	assert_int_equal(spool_files(d, false), 0);
	client_close(&c);
	client_close(&other);
	close(out);
	close(again);
}

static void an_end_that_takes_long_can_be_cancelled(void **state)
{
	struct daemon *d = *state;
	struct client c, other;
	Reply *reply;

	greet(d, &c);
	greet(d, &other);
	start_ok(d, &c, "a", true);
	fakes.gate_closed = true;
	tell(&c, attach_request("a", NULL), -1);
	tell(&c, stop_request("a", NULL), -1);
	await_gate(d);
	assert_int_equal(seen_state(d, &other), TRACED__CONTROL__SESSION__STATE__DRAINING);
	cancel(d, &other, "a");
	assert_int_equal(seen_state(d, &other), -1);
	fakes.gate_closed = false;
	for (int i = 0; i < 2; i++) {
		reply = hear(d, &c);
		assert_error(reply, ECANCELED, "cancelled");
	}
	await_captures(d, 0);
	assert_int_equal(spool_files(d, false), 0);
	client_close(&c);
	client_close(&other);
}

static void a_file_is_written_though_its_client_leaves_while_it_ends(void **state)
{
	struct daemon *d = *state;
	char path[] = "/tmp/traced-test.XXXXXX";
	int out = mkstemp(path);
	struct client c, other;

	assert_true(out >= 0);
	greet(d, &c);
	greet(d, &other);
	start_ok(d, &c, "a", false);
	fakes.gate_closed = true;
	tell(&c, stop_request("a", "txt"), out);
	await_gate(d);
	assert_int_equal(seen_state(d, &other), TRACED__CONTROL__SESSION__STATE__DRAINING);
	leave(d, &c);
	fakes.gate_closed = false;
	turn_until(d, d->manager->session_count == 0);
	assert_output(out, STREAM_MAGIC "end 0");
	assert_int_equal(spool_files(d, false), 0);
	client_close(&other);
	unlink(path);
	close(out);
}

static void a_session_may_end_while_its_snapshot_is_taken(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c, other;
	Reply *reply;

	greet(d, &c);
	greet(d, &other);
	done_with(start(d, &c, "ring", true, true, 0));
	fakes.gate_closed = true;
	tell(&c, snapshot_request("ring", "txt"), out);
	await_gate(d);
	cancel(d, &other, "ring");
	fakes.gate_closed = false;
	reply = hear(d, &c);
	assert_null(reply->error);
	done_with(reply);
	assert_output(out, STREAM_MAGIC "snapshot 3");
	await_captures(d, 0);
	assert_int_equal(spool_files(d, false), 0);
	client_close(&c);
	client_close(&other);
	close(out);
}

static void a_snapshot_for_nobody_is_kept(void **state)
{
	struct daemon *d = *state;
	int ends[2];
	struct client c, other;

	greet(d, &c);
	greet(d, &other);
	done_with(start(d, &c, "ring", true, true, 0));
	fakes.gate_closed = true;
	assert_int_equal(pipe(ends), 0);
	tell(&c, snapshot_request("ring", "txt"), ends[1]);
	await_gate(d);
	leave(d, &c);
	fakes.gate_closed = false;
	turn_until(d, d->manager->job_count == 0);
	cancel(d, &other, "ring");
	await_captures(d, 0);
	/* Without its client only a regular file is written. */
	assert_int_equal(spool_files(d, true), 1);
	client_close(&other);
	close(ends[0]);
	close(ends[1]);
}

static void *open_gate_later(void *userdata _unused_)
{
	pause_ms(50);
	fakes.gate_closed = false;
	return NULL;
}

static void the_daemon_may_end_in_the_middle(void **state)
{
	struct daemon *d = *state;
	struct client c;
	pthread_t opener;

	greet(d, &c);
	start_ok(d, &c, "a", true);
	fakes.gate_closed = true;
	tell(&c, stop_request("a", NULL), -1);
	await_gate(d);
	manager_stop(d->manager);
	manager_stop(d->manager);
	turn(d, 20);
	assert_int_equal(pthread_create(&opener, NULL, open_gate_later, NULL), 0);
	d->manager = manager_free(d->manager);
	pthread_join(opener, NULL);
	assert_int_equal(captures(), 0);
	/* It has its end: the thread was waited for. */
	assert_int_equal(spool_files(d, true), 1);
	client_close(&c);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SERVICE_TEST(rings_are_read_while_the_loop_is_held_up),
		SERVICE_TEST(a_long_snapshot_holds_nobody_up),
		SERVICE_TEST(a_long_end_holds_nobody_up),
		SERVICE_TEST(an_end_that_takes_long_can_be_cancelled),
		SERVICE_TEST(a_file_is_written_though_its_client_leaves_while_it_ends),
		SERVICE_TEST(a_session_may_end_while_its_snapshot_is_taken),
		SERVICE_TEST(a_snapshot_for_nobody_is_kept),
		SERVICE_TEST(the_daemon_may_end_in_the_middle),
	};
	int r = service_test_begin(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
