/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of the daemon while it has recordings. */
#include "service_harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/service/session.h"
#include "traced/stream.h"

static void a_stop_of_the_daemon_finishes_what_is_awaited(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c, other;
	Reply *reply;

	greet(d, &c);
	greet(d, &other);
	start_ok(d, &c, "awaited", false);
	start_ok(d, &other, "detached", true);
	tell(&c, attach_request("awaited", "txt"), out);
	turn(d, 10);
	manager_stop(d->manager);
	reply = hear(d, &c);
	assert_null(reply->error);
	done_with(reply);
	assert_output(out, STREAM_MAGIC "end 5");
	await_captures(d, 0);
	turn_until(d, loop_has_ended(d->loop));
	/* The detached one's, that somebody may come for. */
	assert_int_equal(spool_files(d, false), 1);
	client_close(&c);
	client_close(&other);
	close(out);
}

/* As `tracectl record` does, which passes its output behind the end. */
static void who_waits_for_the_end_can_send_for_it_when_the_daemon_stops(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;
	size_t warnings;
	Reply *reply;

	greet(d, &c);
	/* Told besides. */
	d->manager->config.duration_max = 3600 * NSEC_PER_SEC;
	start_ok(d, &c, "a", false);
	start_ok(d, &c, "detached", true);
	tell(&c, attach_request("a", NULL), -1);
	turn(d, 10);
	manager_stop(d->manager);
	reply = hear(d, &c);
	assert_null(reply->error);
	warnings = reply->finished->session->n_warnings;
	assert_non_null(
		strstr(reply->finished->session->warnings[warnings - 1], "traced was stopped"));
	done_with(reply);
	/* The detached one ends in a thread of its own. */
	turn_until(d, !TAILQ_NEXT(TAILQ_FIRST(&d->manager->sessions), list));
	/* Nothing new begins. */
	assert_error(start(d, &c, "b", false, false, 0), ESHUTDOWN, "stopping");
	assert_error(ask(d, &c, stop_request("detached", NULL), -1), ENOENT, "no session");
	reply = ask(d, &c, stop_request("a", "txt"), out);
	assert_null(reply->error);
	done_with(reply);
	assert_output(out, STREAM_MAGIC "end 5");
	turn_until(d, loop_has_ended(d->loop));
	assert_int_equal(spool_files(d, false), 1);
	client_close(&c);
	close(out);
}

static void what_nobody_sends_for_is_kept_when_the_daemon_stops(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	manager_stop(d->manager);
	assert_non_null(d->manager->claim_timer);
	assert_int_equal(loop_timer_in(d->manager->claim_timer, 100000), 0);
	turn_until(d, loop_has_ended(d->loop));
	assert_int_equal(spool_files(d, false), 1);
	client_close(&c);
}

/* As `tracectl attach` does, which may not be the one who comes for it. */
static void who_watches_is_told_where_it_is_when_the_daemon_stops(void **state)
{
	struct daemon *d = *state;
	struct client c;
	Reply *reply;

	greet(d, &c);
	start_ok(d, &c, "a", true);
	tell(&c, attach_request("a", NULL), -1);
	turn(d, 10);
	manager_stop(d->manager);
	reply = hear(d, &c);
	assert_non_null(reply->error);
	assert_int_equal(reply->error->code, ECANCELED);
	assert_non_null(strstr(reply->error->message, "the daemon stops: its recording is in /"));
	assert_non_null(strstr(reply->error->hint, "tracectl convert /"));
	assert_true(reply->error->hint_needs_output);
	assert_null(strstr(reply->error->hint, "FILE"));
	done_with(reply);
	turn_until(d, loop_has_ended(d->loop));
	assert_int_equal(spool_files(d, false), 1);
	client_close(&c);
}

static void a_stop_of_the_daemon_does_not_wait_for_arming(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	tell_start(d, &c, "a", true, false);
	manager_stop(d->manager);
	assert_error(hear(d, &c), ECANCELED, "the daemon stops");
	turn_until(d, loop_has_ended(d->loop));
	/* manager_free() removes the instances that it armed; the teardown checks that. */
	assert_int_equal(spool_files(d, false), 0);
	client_close(&c);
}

/* The service manager has the socket, too, and passes it to the next daemon. */
static void a_socket_that_was_passed_serves_the_next_daemon(void **state)
{
	struct daemon *d = *state;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), client,
	    taken;
	_cleanup_error_ struct error err = ERROR_INIT;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/passed", d->dir);
	assert_int_equal(bind(listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(manager_listen(d->manager, fcntl(listener, F_DUPFD_CLOEXEC, 0), &err), 0);
	manager_stop(d->manager);
	turn_until(d, loop_has_ended(d->loop));
	d->manager = manager_free(d->manager);
	client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&sa, sizeof(sa)), 0);
	taken = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(taken >= 0);
	unlink(sa.sun_path);
	close(taken);
	close(client);
	close(listener);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SERVICE_TEST(a_stop_of_the_daemon_finishes_what_is_awaited),
		SERVICE_TEST(who_waits_for_the_end_can_send_for_it_when_the_daemon_stops),
		SERVICE_TEST(what_nobody_sends_for_is_kept_when_the_daemon_stops),
		SERVICE_TEST(who_watches_is_told_where_it_is_when_the_daemon_stops),
		SERVICE_TEST(a_stop_of_the_daemon_does_not_wait_for_arming),
		SERVICE_TEST(a_socket_that_was_passed_serves_the_next_daemon),
	};
	int r = service_test_begin(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
