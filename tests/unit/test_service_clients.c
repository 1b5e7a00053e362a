/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests of clients, and limits against hostile ones. */
#include "service_harness.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/service/connection.h"
#include "daemon/service/session.h"

static void a_mark_fails_only_if_nobody_took_it(void **state)
{
	struct daemon *d = *state;
	Traced__Control__Mark mark = TRACED__CONTROL__MARK__INIT;
	REQUEST(request, MARK, mark, mark);
	char text[CAPTURE_MARK_MAX + 2] = { 0 };
	struct client c;
	Reply *reply;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	start_ok(d, &c, "b", false);
	mark.text = (char *)"here";
	fakes.marks_refused = 1;
	reply = ask(d, &c, &request, -1);
	assert_null(reply->error);
	assert_int_equal(reply->done->count, 1);
	done_with(reply);
	fakes.marks_refused = 2;
	assert_error(ask(d, &c, &request, -1), EBADF, "no room");
	memset(text, 'x', CAPTURE_MARK_MAX + 1);
	mark.text = text;
	assert_error(ask(d, &c, &request, -1), EINVAL, "1000");
	text[CAPTURE_MARK_MAX] = '\0';
	reply = ask(d, &c, &request, -1);
	assert_null(reply->error);
	assert_int_equal(reply->done->count, 2);
	done_with(reply);
	client_close(&c);
}

static void a_sync_tells_when_it_was_done(void **state)
{
	struct daemon *d = *state;
	Traced__Control__Sync sync = TRACED__CONTROL__SYNC__INIT;
	REQUEST(request, SYNC, sync, sync);
	struct client c;
	Reply *reply;

	greet(d, &c);
	sync.id = (char *)"some-id";
	assert_error(ask(d, &c, &request, -1), ENOENT, "nothing is recording");
	start_ok(d, &c, "a", false);
	start_ok(d, &c, "b", false);
	fakes.marks = 0;
	reply = ask(d, &c, &request, -1);
	assert_null(reply->error);
	assert_int_equal(reply->synced->count, 2);
	assert_int_equal(reply->synced->before_ns, 100);
	assert_int_equal(reply->synced->after_ns, 115);
	assert_string_equal(fakes.last_mark, "some-id");
	done_with(reply);
	/* One that has it already is no reason to fail; two are. */
	fakes.marks_refused = 1;
	reply = ask(d, &c, &request, -1);
	assert_null(reply->error);
	assert_int_equal(reply->synced->count, 1);
	done_with(reply);
	fakes.marks_refused = 2;
	assert_error(ask(d, &c, &request, -1), EEXIST, "already");
	sync.session = (char *)"nobody";
	assert_error(ask(d, &c, &request, -1), ENOENT, "no session");
	client_close(&c);
}

/* An idle daemon has nothing that ends and gives descriptors back. */
static void a_lack_of_descriptors_passes(void **state)
{
	struct daemon *d = *state;
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct rlimit before, none;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/socket", d->dir);
	assert_int_equal(bind(listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(listener, 4), 0);
	assert_int_equal(manager_listen(d->manager, listener, &err), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&sa, sizeof(sa)), 0);
	unlink(sa.sun_path);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	turn(d, 50);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	turn(d, 50);
	/* Or it would try, and fail, all the time. */
	assert_int_equal(d->manager->connection_count, 0);
	turn_until(d, d->manager->connection_count == 1);
	close(client);
}

static void others_keep_their_hands_off(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	Traced__Control__Extract extract = TRACED__CONTROL__EXTRACT__INIT;
	Traced__Control__Mark mark = TRACED__CONTROL__MARK__INIT;
	struct client owner, other;
	Reply *reply;

	greet(d, &owner);
	greet(d, &other);
	TAILQ_FIRST(&d->manager->connections)->uid = 1000;
	TAILQ_LAST(&d->manager->connections, connection_list)->uid = 1001;
	start_ok(d, &owner, "a", false);
	assert_error(ask(d, &other, stop_request("a", "txt"), out), EPERM, "another user's");
	assert_error(ask(d, &other, attach_request("a", NULL), -1), EPERM, "another user's");
	reply = ask(d, &other, status_request(), -1);
	assert_int_equal(reply->status->n_sessions, 0);
	done_with(reply);
	reply = ask(d, &owner, status_request(), -1);
	assert_int_equal(reply->status->n_sessions, 1);
	assert_int_equal(reply->status->sessions[0]->uid, 1000);
	assert_true(reply->status->rss_bytes > 0);
	done_with(reply);
	{
		REQUEST(request, MARK, mark, mark);
		mark.text = (char *)"here";
		assert_error(ask(d, &other, &request, -1), ENOENT, "nothing is recording");
		request.id = ++next_id;
		reply = ask(d, &owner, &request, -1);
		assert_int_equal(reply->done->count, 1);
		assert_string_equal(fakes.last_mark, "here");
		done_with(reply);
	}
	{
		REQUEST(request, EXTRACT, extract, extract);
		assert_error(ask(d, &other, &request, -1), EPERM, "root");
	}
	client_close(&owner);
	client_close(&other);
	close(out);
}

/* Root finds another user's session by that user's number, which the hints have, too. */
static void hints_have_the_name_for_root(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client owner, root;

	greet(d, &owner);
	greet(d, &root);
	TAILQ_FIRST(&d->manager->connections)->uid = 1000;
	TAILQ_LAST(&d->manager->connections, connection_list)->uid = 0;
	done_with(start(d, &owner, "a", true, false, 20));
	turn_until(d, TAILQ_FIRST(&d->manager->sessions)->state == SESSION_STOPPED);
	assert_error(ask(d, &root, snapshot_request("1000/a", "txt"), out), EINVAL,
		     "tracectl stop 1000/a -o");
	assert_error(ask(d, &owner, snapshot_request("a", "txt"), out), EINVAL,
		     "tracectl stop a -o");
	client_close(&owner);
	client_close(&root);
	close(out);
}

static void assert_dropped(struct daemon *d, struct client *c)
{
	Reply *reply;

	while ((reply = hear(d, c)))
		done_with(reply);
	client_close(c);
}

static void hostile_clients_hurt_only_themselves(void **state)
{
	struct daemon *d = *state;
	static const uint8_t huge[] = { 0xff, 0xff, 0xff, 0x7f, 1 };
	static const uint8_t garbage[] = { 4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t empty[] = { 0, 0, 0, 0 };
	struct client good, bad;
	Reply *reply;

	greet(d, &good);
	start_ok(d, &good, "a", false);

	client_open(d, &bad);
	assert_int_equal(write(bad.fd, huge, sizeof(huge)), sizeof(huge));
	reply = hear(d, &bad);
	assert_int_equal(reply->id, 0);
	assert_error(reply, EMSGSIZE, "longer");
	assert_dropped(d, &bad);

	client_open(d, &bad);
	assert_int_equal(write(bad.fd, garbage, sizeof(garbage)), sizeof(garbage));
	assert_dropped(d, &bad);

	client_open(d, &bad);
	assert_int_equal(write(bad.fd, empty, sizeof(empty)), sizeof(empty));
	assert_dropped(d, &bad);

	client_open(d, &bad);
	tell(&bad, status_request(), -1);
	assert_error(hear(d, &bad), EPROTO, "Hello");
	assert_dropped(d, &bad);

	client_open(d, &bad); /* half a frame, then gone */
	assert_int_equal(write(bad.fd, huge, 3), 3);
	turn(d, 5);
	client_close(&bad);

	reply = ask(d, &good, status_request(), -1);
	assert_int_equal(reply->status->n_sessions, 1);
	done_with(reply);
	assert_int_equal(d->manager->connection_count, 1);
	client_close(&good);
}

static void what_the_kernel_offers(void **state)
{
	Traced__Control__ListQuery list = TRACED__CONTROL__LIST_QUERY__INIT;
	Traced__Control__EventsQuery events = TRACED__CONTROL__EVENTS_QUERY__INIT;
	struct daemon *d = *state;
	struct client c;
	Reply *reply;

	greet(d, &c);
	REQUEST(request, LIST, list, list);
	reply = ask(d, &c, &request, -1);
	assert_null(reply->error);
	assert_int_equal(reply->events->n_names, 2);
	assert_string_equal(reply->events->names[1], "boot");
	done_with(reply);
	list.what = (Traced__Control__ListQuery__What)77;
	request.id = ++next_id;
	assert_error(ask(d, &c, &request, -1), EINVAL, "does not know");
	REQUEST(formats, EVENTS, events, events);
	events.glob = (char *)"sched";
	events.formats = true;
	reply = ask(d, &c, &formats, -1);
	assert_null(reply->error);
	assert_int_equal(reply->events->n_formats, 2);
	assert_string_equal(reply->events->names[0], "sched:sched_switch");
	assert_string_equal(reply->events->formats[0], "format of sched:sched_switch");
	done_with(reply);
	client_close(&c);
}

static void who_does_not_read_is_not_served(void **state)
{
	struct daemon *d = *state;
	Traced__Control__EventsQuery query = TRACED__CONTROL__EVENTS_QUERY__INIT;
	const struct connection *connection;
	struct client c;
	unsigned sent = 0;

	greet(d, &c);
	connection = TAILQ_FIRST(&d->manager->connections);
	for (; sent < 1000000; sent++) {
		REQUEST(request, EVENTS, events, query);
		if (frame_queue(&c.io, &request.base, NULL, 0) < 0 || frame_queued(&c.io) > 4096)
			break;
		assert_true(frame_flush(&c.io) >= 0);
		turn(d, sent % 64 == 0);
	}
	turn(d, 50);
	assert_true(frame_queued(&connection->io) < 2 * CONTROL_QUEUE_MAX / 256);
	/* And goes on when it reads. */
	for (unsigned i = 0; i < sent; i++) {
		assert_true(frame_flush(&c.io) >= 0);
		done_with(hear(d, &c));
	}
	client_close(&c);
}

static void requests_in_flight_are_bounded(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	for (int i = 0; i < CONNECTION_IN_FLIGHT_MAX; i++)
		tell(&c, attach_request("a", NULL), -1);
	assert_error(ask(d, &c, attach_request("a", NULL), -1), EBUSY, "too many");
	client_close(&c);
}

/* Asks for the status, over and over. */
static void tell_status(struct client *c, unsigned times)
{
	while (times--)
		tell(c, status_request(), -1);
}

static unsigned count_replies(struct client *c)
{
	int fds[CONTROL_FDS_MAX];
	const uint8_t *payload;
	unsigned count = 0;
	size_t len, n;

	while (frame_receive(&c->io, &payload, &len, fds, &n) > 0)
		count++;
	return count;
}

/* Half of the crowd has subordinate ids, or all of it. */
static void check_turns(struct daemon *d, uid_t one, uid_t rest, uid_t other)
{
	enum { CROWD = 15, EACH = 30 };
	struct client crowd[CROWD], alone;
	unsigned before = 0;

	for (int i = 0; i < CROWD; i++)
		greet_as(d, &crowd[i], i % 2 ? rest + i : one);
	greet_as(d, &alone, other);
	for (int i = 0; i < CROWD; i++)
		tell_status(&crowd[i], EACH);
	turn(d, 1);
	for (int i = 0; i < CROWD; i++)
		count_replies(&crowd[i]);
	tell_status(&alone, 4);
	for (unsigned heard = 0; heard < 4; heard += count_replies(&alone))
		assert_int_equal(loop_step(d->loop, 1000000), 0);
	for (int i = 0; i < CROWD; i++)
		before += count_replies(&crowd[i]);
	/* One for one, and what was under way. */
	assert_true(before <= 4 + CROWD);
	client_close(&alone);
	for (int i = 0; i < CROWD; i++)
		client_close(&crowd[i]);
	turn_until(d, TAILQ_EMPTY(&d->manager->connections));
}

static void users_take_turns(void **state)
{
	const char *text = "1000:200000:65536\n";
	struct daemon *d = *state;

	assert_int_equal(replace_file(d->subuid, text, strlen(text), 0644, false), 0);
	/* Before and behind the crowd's owner. */
	for (uid_t other = 500; other <= 2000; other += 1500) {
		check_turns(d, 1000, 200000, other);
		check_turns(d, 200100, 200000, other);
	}
}

/* Limits and descriptors of a connection are its account's. */
static void a_connection_has_its_account(void **state)
{
	struct daemon *d = *state;
	const uid_t uid = geteuid() ?: 200000;
	const struct connection *own;
	_cleanup_free_ char *text = NULL;
	struct client c;

	assert_true(asprintf(&text, "4711:%u:1\n", uid) > 0);
	assert_int_equal(replace_file(d->subuid, text, strlen(text), 0644, false), 0);
	client_open_as(d, &c, uid);
	own = TAILQ_LAST(&d->manager->connections, connection_list);
	assert_int_equal(own->uid, uid);
	assert_int_equal(own->account, 4711);
	assert_int_equal(own->io.account, 4711);
	client_close(&c);
}

/* Also while replies to it can't be sent any more. */
static void what_a_client_asked_for_is_done_though_it_left(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	start_ok(d, &c, "a", true);
	for (int i = 0; i < 8; i++)
		tell(&c, status_request(), -1);
	tell(&c, cancel_request("a"), -1);
	client_close(&c);
	turn_until(d, d->manager->session_count == 0);
	turn_until(d, d->manager->connection_count == 0);
	assert_int_equal(spool_files(d, false), 0);
}

/* Its connection counts for its user until it is over: that waits for no turns. */
static void a_client_that_left_is_over_soon(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	for (int i = 0; i < 900; i++)
		assert_int_equal(frame_queue(&c.io, &status_request()->base, NULL, 0), 0);
	assert_int_equal(frame_flush(&c.io), 0);
	client_close(&c);
	for (int i = 0; i < 50 && d->manager->connection_count; i++)
		assert_int_equal(loop_step(d->loop, 1000), 0);
	assert_int_equal(d->manager->connection_count, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SERVICE_TEST(a_mark_fails_only_if_nobody_took_it),
		SERVICE_TEST(a_sync_tells_when_it_was_done),
		SERVICE_TEST(a_lack_of_descriptors_passes),
		SERVICE_TEST(others_keep_their_hands_off),
		SERVICE_TEST(hints_have_the_name_for_root),
		SERVICE_TEST(hostile_clients_hurt_only_themselves),
		SERVICE_TEST(what_the_kernel_offers),
		SERVICE_TEST(who_does_not_read_is_not_served),
		SERVICE_TEST(requests_in_flight_are_bounded),
		SERVICE_TEST(users_take_turns),
		SERVICE_TEST(a_connection_has_its_account),
		SERVICE_TEST(what_a_client_asked_for_is_done_though_it_left),
		SERVICE_TEST(a_client_that_left_is_over_soon),
	};
	int r = service_test_begin(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
