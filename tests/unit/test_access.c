/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Access to the daemon: limits and rules for users, and what the log says about them. */
#include "occurrences.h"
#include "service_harness.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/log.h"
#include "daemon/service/audit.h"
#include "daemon/service/connection.h"
#include "daemon/service/policy.h"
#include "daemon/service/session.h"
#include "daemon/service/spool.h"
#include "traced/stream.h"

#define ALICE 1000
#define BOB 1001

static void assert_status(struct daemon *d, struct client *c, const char *names)
{
	Reply *reply = ask(d, c, status_request(), -1);
	char text[256] = "";

	assert_null(reply->error);
	for (size_t i = 0; i < reply->status->n_sessions; i++) {
		strcat(text, reply->status->sessions[i]->name);
		strcat(text, " ");
	}
	assert_string_equal(text, names);
	done_with(reply);
}

/* Nobody's session stands in the way of another's, and nobody takes one by mistake. */
static void names_belong_to_their_users(void **state)
{
	struct daemon *d = *state;
	struct client alice, bob, root;

	greet_as(d, &alice, ALICE);
	greet_as(d, &bob, BOB);
	greet_as(d, &root, 0);
	start_ok(d, &alice, "a", false);
	start_ok(d, &bob, "b", false);
	assert_error(start(d, &alice, "a", false, false, 0), EEXIST, "exists already");
	assert_error(ask(d, &alice, cancel_request("b"), -1), EPERM, "ask uid 1001");
	assert_error(ask(d, &alice, cancel_request("1001/b"), -1), EPERM, "ask uid 1001");
	assert_error(ask(d, &alice, cancel_request("c"), -1), ENOENT, "tracectl list");
	assert_error(ask(d, &root, cancel_request("a"), -1), EPERM, "you may call it 1000/a");
	start_ok(d, &root, "a", false);
	start_ok(d, &bob, "a", false);
	assert_status(d, &alice, "a ");
	assert_status(d, &bob, "b a ");
	assert_status(d, &root, "1000/a 1001/b a 1001/a ");
	done_with(ask(d, &root, cancel_request("a"), -1));
	assert_status(d, &root, "1000/a 1001/b 1001/a ");
	done_with(ask(d, &root, cancel_request("1001/a"), -1));
	done_with(ask(d, &alice, cancel_request("1000/a"), -1));
	assert_status(d, &root, "1001/b ");
	for (const char *const *wrong = (const char *const[]){ "/b", "x/b", "1001x/b", "-1/b",
							       "99999999999/b", "1001/", NULL };
	     *wrong; wrong++)
		assert_error(ask(d, &root, cancel_request(*wrong), -1), ENOENT, "no session");
	client_close(&alice);
	client_close(&bob);
	client_close(&root);
}

/* A program of a container is another user, and counts as its owner. */
static void subordinate_ids_count_as_their_owner(void **state)
{
	const char *text = "1000:200000:65536\n";
	struct daemon *d = *state;
	struct client alice, inside;
	const struct session *s;

	assert_int_equal(replace_file(d->subuid, text, strlen(text), 0644, false), 0);
	greet_as(d, &alice, ALICE);
	greet_as(d, &inside, 200005);
	start_ok(d, &alice, "a", false);
	s = TAILQ_FIRST(&d->manager->sessions);
	start_ok(d, &inside, "a", false);
	assert_int_equal(s->account, ALICE);
	assert_int_equal(TAILQ_NEXT(s, list)->account, ALICE);
	assert_status(d, &alice, "a ");
	assert_error(ask(d, &inside, cancel_request("1000/a"), -1), EPERM, "ask uid 1000");
	assert_error(ask(d, &alice, cancel_request("200005/a"), -1), EPERM, "ask uid 200005");
	client_close(&alice);
	client_close(&inside);
}

static struct user_rules *rules(struct daemon *d)
{
	return &d->manager->config.users;
}

static void set_words(struct string_list *list, const char *words)
{
	string_list_deinit(list);
	assert_int_equal(string_list_add_words(list, words), 0);
}

static void each_user_has_so_many_sessions(void **state)
{
	struct daemon *d = *state;
	struct client alice, bob, root;

	greet_as(d, &alice, ALICE);
	greet_as(d, &bob, BOB);
	greet_as(d, &root, 0);
	rules(d)->sessions = 2;
	start_ok(d, &alice, "a", false);
	start_ok(d, &alice, "b", false);
	assert_error(start(d, &alice, "c", false, false, 0), EUSERS, "\"sessions\" in [users]");
	start_ok(d, &bob, "c", false);
	for (int i = 0; i < 3; i++)
		done_with(start(d, &root, "", false, false, 0));
	assert_int_equal(d->manager->session_count, 6);
	client_close(&alice);
	client_close(&bob);
	client_close(&root);
}

static void subordinate_ids_count_with_their_owner(void **state)
{
	const char *text = "1000:200000:65536\n";
	_cleanup_error_ struct error err = ERROR_INIT;
	struct daemon *d = *state;
	struct client alice, inside, bob;
	int out = memfd_create("out", MFD_CLOEXEC);

	rules(d)->sessions = 2;
	assert_int_equal(replace_file(d->subuid, text, strlen(text), 0644, false), 0);
	greet_as(d, &alice, ALICE);
	greet_as(d, &inside, 200005);
	greet_as(d, &bob, BOB);
	start_ok(d, &alice, "a", false);
	start_ok(d, &inside, "a", false);
	assert_error(start(d, &alice, "b", false, false, 0), EUSERS,
		     "uid 1000 and its subordinate ids have 2 sessions");
	assert_error(start(d, &inside, "b", false, false, 0), EUSERS, "uid 1000");
	start_ok(d, &bob, "b", false);
	assert_error(ask(d, &inside, stop_request("a", "fail"), out), ENOSPC, "200005+a-");
	assert_int_equal(spool_bytes_of(d->spool, d->manager->accounts, BOB), 0);
	assert_true(spool_bytes_of(d->spool, d->manager->accounts, ALICE) > 0);
	assert_int_equal(TAILQ_FIRST(&d->manager->sessions)->spool_elsewhere,
			 spool_bytes_of(d->spool, d->manager->accounts, ALICE));
	rules(d)->clients = 2;
	assert_int_equal(policy_check_client(d->manager, 265535, &err), -EUSERS);
	assert_non_null(strstr(err.message, "2 clients of uid 1000 and its subordinate ids"));
	assert_int_equal(policy_check_client(d->manager, 265536, &err), 0);
	assert_int_equal(policy_check_client(d->manager, BOB, &err), 0);
	client_close(&alice);
	client_close(&inside);
	client_close(&bob);
	close(out);
}

static void users_together_leave_sessions_for_root(void **state)
{
	struct daemon *d = *state;
	struct client users[2], root;

	greet_as(d, &users[0], ALICE);
	greet_as(d, &users[1], BOB);
	greet_as(d, &root, 0);
	d->manager->config.sessions = 2;
	start_ok(d, &users[0], "a", false);
	start_ok(d, &users[1], "b", false);
	assert_error(start(d, &users[1], "c", false, false, 0), EUSERS, "2 sessions are the limit");
	start_ok(d, &root, "c", false);
	client_close(&users[0]);
	client_close(&users[1]);
	client_close(&root);
}

static Reply *start_buffer(struct daemon *d, struct client *c, uint64_t bytes)
{
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, message);

	message.buffer_bytes = bytes;
	return ask(d, c, &request, -1);
}

static void ring_buffers_are_counted_for_each_user(void **state)
{
	uint64_t cpus = (uint64_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	struct daemon *d = *state;
	struct client alice, bob;
	Reply *reply;

	greet_as(d, &alice, ALICE);
	greet_as(d, &bob, BOB);
	rules(d)->buffer_memory = cpus << 20;
	reply = start_buffer(d, &alice, 1 << 19);
	assert_null(reply->error);
	done_with(reply);
	assert_int_equal(TAILQ_FIRST(&d->manager->sessions)->memory_bytes, cpus << 19);
	assert_error(start_buffer(d, &alice, (1 << 19) + 4096), EDQUOT, "buffer_memory");
	assert_error(start_buffer(d, &bob, UINT64_MAX - 1), EDQUOT, "(-b)");
	reply = start_buffer(d, &alice, 1 << 19);
	assert_null(reply->error);
	done_with(reply);
	rules(d)->buffer_memory = 0;
	reply = start_buffer(d, &alice, 1 << 30);
	assert_null(reply->error);
	done_with(reply);
	client_close(&alice);
	client_close(&bob);
}

/* A user may have many uids. */
static void ring_buffers_of_all_users_are_counted(void **state)
{
	uint64_t cpus = (uint64_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	struct daemon *d = *state;
	struct client c[3];
	Reply *reply;

	rules(d)->buffer_memory = cpus << 20;
	for (uid_t i = 0; i < ARRAY_SIZE(c); i++)
		greet_as(d, &c[i], ALICE + i);
	for (size_t i = 0; i < 2; i++) {
		reply = start_buffer(d, &c[i], 1 << 20);
		assert_null(reply->error);
		done_with(reply);
	}
	assert_error(start_buffer(d, &c[2], 4096), EDQUOT, "all users");
	TAILQ_LAST(&d->manager->connections, connection_list)->uid = 0;
	reply = start_buffer(d, &c[2], 1 << 20);
	assert_null(reply->error);
	done_with(reply);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		client_close(&c[i]);
}

static Reply *start_recorder(struct daemon *d, struct client *c, char *name, uint64_t bytes)
{
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, message);

	message.name = name;
	message.buffer_bytes = bytes;
	message.ring = true;
	return ask(d, c, &request, -1);
}

static void snapshots_to_failing_outputs_count(void **state)
{
	uint64_t max = (uint64_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L) * 8192;
	int out = memfd_create("out", MFD_CLOEXEC), count = 0;
	struct daemon *d = *state;
	struct client alice;
	struct session *s;
	Reply *reply;

	greet_as(d, &alice, ALICE);
	rules(d)->spool_max = max;
	reply = start_recorder(d, &alice, (char *)"r", 8192);
	assert_null(reply->error);
	done_with(reply);
	s = TAILQ_FIRST(&d->manager->sessions);
	fakes.held = max - 100;
	for (;;) {
		reply = ask(d, &alice, snapshot_request("r", "fail"), out);
		assert_non_null(reply->error);
		if (reply->error->code != ENOSPC)
			break;
		done_with(reply);
		assert_int_equal(s->spool_elsewhere,
				 spool_bytes_of(d->spool, d->manager->accounts, ALICE));
		assert_in_range(++count, 1, 10);
	}
	assert_error(reply, EDQUOT, "spool_max");
	assert_in_range(count, 2, 10);
	assert_true(spool_bytes_of(d->spool, d->manager->accounts, ALICE) <= max);
	/* Its end would not fit, either; it goes on until it does. */
	assert_error(ask(d, &alice, stop_request("r", "txt"), out), EDQUOT, "spool_max");
	assert_true(session_records(s));
	spool_files(d, true);
	reply = ask(d, &alice, stop_request("r", "txt"), out);
	assert_null(reply->error);
	done_with(reply);
	client_close(&alice);
	close(out);
}

/* The limit is checked before the names of a stream are written, and these may be large. */
static void names_do_not_exceed_the_limit(void **state)
{
	const uint64_t max = (uint64_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L) * 8192;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct daemon *d = *state;
	struct client alice, bob;
	char *name, *end;
	Reply *reply;

	greet_as(d, &alice, ALICE);
	greet_as(d, &bob, BOB);
	rules(d)->spool_max = max;
	reply = start_recorder(d, &alice, (char *)"r", 8192);
	assert_null(reply->error);
	done_with(reply);
	fakes.held = 100;
	fakes.rest = max / 2 + 100;
	reply = ask(d, &alice, snapshot_request("r", "fail"), out);
	name = strdup(strstr(reply->error->hint, "tracectl convert "));
	assert_error(reply, ENOSPC, "tracectl cancel");
	assert_error(ask(d, &alice, snapshot_request("r", "fail"), out), ENOSPC, "is discarded");
	assert_in_range(spool_bytes_of(d->spool, d->manager->accounts, ALICE), max / 2, max);
	/* The hint of a refusal names a way out, which is open to the recording's user only. */
	fakes.held = max;
	assert_error(ask(d, &alice, snapshot_request("r", "txt"), out), EDQUOT,
		     "tracectl cancel FILE");
	end = strrchr(name, ' ') + 1;
	assert_error(ask(d, &bob, cancel_request(end), -1), ENOENT, "no session");
	reply = ask(d, &alice, cancel_request(end), -1);
	assert_null(reply->error);
	done_with(reply);
	assert_int_equal(spool_bytes_of(d->spool, d->manager->accounts, ALICE), 0);
	/* A recording that is over is kept. */
	fakes.held = fakes.rest = 0;
	rules(d)->spool_max = 10;
	assert_error(ask(d, &alice, stop_request("r", "fail"), out), ENOSPC, "is safe");
	assert_in_range(spool_bytes_of(d->spool, d->manager->accounts, ALICE), 10, 1000);
	free(name);
	client_close(&alice);
	client_close(&bob);
	close(out);
}

/* The bytes of kept recordings are not all that counts: each request looks at all of them. */
static void kept_recordings_are_few(void **state)
{
	int out = memfd_create("out", MFD_CLOEXEC);
	struct daemon *d = *state;
	struct client alice, bob;
	Reply *reply = NULL;

	greet_as(d, &alice, ALICE);
	greet_as(d, &bob, BOB);
	for (int i = 0; i < 32; i++) {
		start_ok(d, &alice, "a", false);
		assert_error(ask(d, &alice, stop_request("a", "fail"), out), ENOSPC, "1000+a-");
	}
	assert_error(start(d, &alice, "a", false, false, 0), EDQUOT, "32 of your recordings");
	start_ok(d, &bob, "a", false);
	/* A flight recorder's snapshots are kept as well. */
	reply = start_recorder(d, &bob, (char *)"r", 8192);
	assert_null(reply->error);
	done_with(reply);
	for (int i = 0; i < 32; i++)
		assert_error(ask(d, &bob, snapshot_request("r", "fail"), out), ENOSPC, "1001+r-");
	assert_error(ask(d, &bob, snapshot_request("r", "txt"), out), EDQUOT, "tracectl recover");
	spool_files(d, true);
	start_ok(d, &alice, "a", false);
	client_close(&alice);
	client_close(&bob);
	close(out);
}

static void a_flight_recorder_fits_into_its_spool(void **state)
{
	uint64_t cpus = (uint64_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	struct daemon *d = *state;
	struct client alice, root;
	Reply *reply;

	greet_as(d, &alice, ALICE);
	greet_as(d, &root, 0);
	d->manager->config.spool_max = cpus * 8192;
	assert_error(start_recorder(d, &root, (char *)"r", 8192 * 2), EDQUOT, "in [limits]");
	rules(d)->spool_max = cpus * 4096;
	assert_error(start_recorder(d, &alice, (char *)"r", 8192), EDQUOT, "in [users]");
	reply = start_recorder(d, &root, (char *)"r", 8192);
	assert_null(reply->error);
	done_with(reply);
	client_close(&alice);
	client_close(&root);
}

/* A user's recording ends before root's would. */
static void users_leave_free_space_for_root(void **state)
{
	struct daemon *d = *state;
	struct client alice, root;
	struct statvfs fs;

	greet_as(d, &alice, ALICE);
	greet_as(d, &root, 0);
	assert_int_equal(statvfs(d->dir, &fs), 0);
	d->manager->config.min_free = (uint64_t)fs.f_bavail * fs.f_frsize / 3 * 2;
	assert_error(start(d, &alice, "a", false, false, 0), ENOSPC, "make room");
	start_ok(d, &root, "b", false);
	client_close(&alice);
	client_close(&root);
}

static void a_users_recordings_fill_no_more_than_their_part(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client alice, bob;
	Reply *reply;

	greet_as(d, &alice, ALICE);
	greet_as(d, &bob, BOB);
	rules(d)->spool_max = 100;
	start_ok(d, &alice, "a", true);
	assert_int_equal(spool_bytes_of(d->spool, d->manager->accounts, ALICE), 0);
	for (int i = 0; i < 40 && captures(); i++) {
		feed();
		turn(d, 5);
	}
	await_captures(d, 0);
	assert_error(start(d, &alice, "b", false, false, 0), EDQUOT, "spool_max");
	start_ok(d, &bob, "b", false);
	/* A failed export's spool still counts for its owner, and for nobody else. */
	assert_error(ask(d, &alice, stop_request("a", "fail"), out), ENOSPC, "1000+a-");
	assert_int_equal(spool_bytes_of(d->spool, d->manager->accounts, BOB), 0);
	assert_true(spool_bytes_of(d->spool, d->manager->accounts, ALICE) > 100);
	assert_error(start(d, &alice, "c", false, false, 0), EDQUOT, "spool_max");
	reply = ask(d, &bob, stop_request("b", "txt"), out);
	assert_null(reply->error);
	done_with(reply);
	spool_files(d, true);
	start_ok(d, &alice, "c", false);
	client_close(&alice);
	client_close(&bob);
	close(out);
}

static void a_users_time_is_bounded(void **state)
{
	struct daemon *d = *state;
	struct client alice, root;
	Reply *reply;

	greet_as(d, &alice, ALICE);
	greet_as(d, &root, 0);
	rules(d)->duration_max = NSEC_PER_SEC;
	assert_error(start(d, &alice, "a", false, false, 2000), EINVAL, "[users]");
	reply = start(d, &alice, "a", false, false, 0);
	assert_int_equal(reply->session->duration_ns, NSEC_PER_SEC);
	assert_non_null(strstr(reply->session->warnings[1], "duration_max in [users]"));
	done_with(reply);
	reply = start(d, &root, "b", false, false, 2000);
	assert_null(reply->error);
	done_with(reply);
	d->manager->config.duration_max = NSEC_PER_SEC / 2;
	assert_error(start(d, &alice, "c", false, false, 700), EINVAL, "[limits]");
	client_close(&alice);
	client_close(&root);
}

static void addresses_are_roots(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	Traced__Control__Output early = TRACED__CONTROL__OUTPUT__INIT;
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(begin, START, start, message);
	struct client alice;
	Request *request;

	greet_as(d, &alice, ALICE);
	early.format = (char *)"raw";
	message.output = &early;
	assert_error(ask(d, &alice, &begin, -1), EPERM, "raw_addresses = yes");
	start_ok(d, &alice, "a", false);
	assert_error(ask(d, &alice, stop_request("a", "raw"), out), EPERM, "raw_addresses = yes");
	request = stop_request("a", "txt");
	request->stop->output->raw_addresses = true;
	assert_error(ask(d, &alice, request, out), EPERM, "addresses");
	assert_int_equal(d->manager->session_count, 1);
	rules(d)->raw_addresses.all = true;
	request->id = ++next_id;
	done_with(ask(d, &alice, request, out));
	assert_output(out, STREAM_MAGIC "end 0");
	client_close(&alice);
	close(out);
}

/* A recording of histograms alone has no addresses; with anything beside them it may have. */
static void histograms_alone_are_a_users(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	Traced__Control__Output early = TRACED__CONTROL__OUTPUT__INIT;
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	Traced__Control__EventSpec event = TRACED__CONTROL__EVENT_SPEC__INIT;
	Traced__Control__EventSpec *events = &event;
	char *hists[] = { (char *)"sched_switch:keys=next_pid", (char *)"x\ny:keys=z" };
	REQUEST(begin, START, start, message);
	struct client alice;
	Reply *reply;

	greet_as(d, &alice, ALICE);
	event.glob = (char *)"sched";
	message.name = (char *)"a";
	message.hists = hists;
	message.n_hists = 1;
	message.output = &early;
	early.format = (char *)"raw";
	assert_error(ask(d, &alice, &begin, -1), EPERM, "raw_addresses = yes");
	early.format = (char *)"stream";
	message.events = &events;
	message.n_events = 1;
	assert_error(ask(d, &alice, &begin, -1), EPERM, "raw_addresses = yes");
	message.n_events = 0;
	message.n_hists = 2;
	assert_error(ask(d, &alice, &begin, -1), EINVAL, "control");
	message.n_hists = 1;
	begin.id = ++next_id;
	reply = ask(d, &alice, &begin, -1);
	assert_null(reply->error);
	done_with(reply);
	assert_true(TAILQ_FIRST(&d->manager->sessions)->counts_only);
	assert_error(ask(d, &alice, stop_request("a", "raw"), out), EPERM, "raw_addresses = yes");
	done_with(ask(d, &alice, stop_request("a", "stream"), out));
	assert_output(out, STREAM_MAGIC "end 0");
	/* Their memory is the kernel's, as that of ring buffers. */
	rules(d)->buffer_memory = 1;
	message.output = NULL;
	assert_error(ask(d, &alice, &begin, -1), EDQUOT, "histograms");
	client_close(&alice);
	close(out);
}

/* Everybody's list has what each session records. */
static void what_a_session_records_is_clipped(void **state)
{
	struct daemon *d = *state;
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(begin, START, start, message);
	char hist[3001], *hists[] = { hist, hist };
	const char *what;
	struct client alice;
	Reply *reply;

	greet_as(d, &alice, ALICE);
	memset(hist, 'x', sizeof(hist) - 1);
	hist[sizeof(hist) - 1] = '\0';
	message.name = (char *)"a";
	message.hists = hists;
	message.n_hists = ARRAY_SIZE(hists);
	reply = ask(d, &alice, &begin, -1);
	assert_null(reply->error);
	done_with(reply);
	what = TAILQ_FIRST(&d->manager->sessions)->what;
	assert_true(strlen(what) < 5000);
	assert_string_equal(what + strlen(what) - 6, "xx ...");
	client_close(&alice);
}

/* Each snapshot has an exporter of its own. */
static void few_snapshots_are_written_at_once(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client alice, root;
	Reply *reply;

	greet_as(d, &alice, ALICE);
	greet_as(d, &root, 0);
	start_ok(d, &alice, "a", false);
	start_ok(d, &root, "r", false);
	for (unsigned i = 0; i < LOOKS_MAX; i++)
		tell(&alice, snapshot_request("a", "hang"), out);
	assert_error(ask(d, &alice, snapshot_request("a", "hang"), out), EBUSY, "limit");
	reply = ask(d, &root, snapshot_request("r", "stream"), out);
	assert_null(reply->error);
	done_with(reply);
	client_close(&alice);
	client_close(&root);
	close(out);
}

/* user_filter.c checks the filters. */
static void filters_of_users_hide_addresses(void **state)
{
	struct daemon *d = *state;
	struct client alice, root;

	greet_as(d, &alice, ALICE);
	greet_as(d, &root, 0);
	start_ok(d, &alice, "a", false);
	assert_true(fakes.hide_addresses);
	start_ok(d, &root, "b", false);
	assert_false(fakes.hide_addresses);
	rules(d)->raw_addresses.all = true;
	start_ok(d, &alice, "c", false);
	assert_false(fakes.hide_addresses);
	client_close(&alice);
	client_close(&root);
}

struct wish {
	const char *tracer, *function, *option, *kprobe, *uprobe, *graph_root;
	unsigned hz, depth;
	bool top_level;
	int pid, process;
};

static Reply *wish_for(struct daemon *d, struct client *c, const struct wish *w)
{
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, message);
	Traced__Control__Probe probe = TRACED__CONTROL__PROBE__INIT;
	char *words[] = { (char *)w->function, (char *)w->option };

	if (w->tracer)
		message.tracer = (char *)w->tracer;
	message.functions = &words[0];
	message.n_functions = w->function != NULL;
	message.options = &words[1];
	message.n_options = w->option != NULL;
	message.graph_roots = &(char *){ (char *)w->graph_root };
	message.n_graph_roots = w->graph_root != NULL;
	message.graph_depth = w->depth;
	if (w->kprobe)
		probe.definition = (char *)w->kprobe;
	if (w->uprobe)
		probe.definition = (char *)w->uprobe;
	probe.kind = w->uprobe ? TRACED__CONTROL__PROBE__KIND__UPROBE
			       : TRACED__CONTROL__PROBE__KIND__KPROBE;
	message.probes = &(Traced__Control__Probe *){ &probe };
	message.n_probes = w->kprobe || w->uprobe;
	message.top_level = w->top_level;
	message.sample_hz = w->hz;
	message.pids = &(int32_t){ w->pid };
	message.n_pids = w->pid != 0;
	message.processes = &(int32_t){ w->process };
	message.n_processes = w->process != 0;
	return ask(d, c, &request, -1);
}

static void assert_granted(struct daemon *d, struct client *c, const struct wish *w)
{
	Reply *reply = wish_for(d, c, w);

	if (reply->error)
		fail_msg("%s", reply->error->message);
	done_with(reply);
	while (!TAILQ_EMPTY(&d->manager->sessions))
		session_cancel(TAILQ_FIRST(&d->manager->sessions), "the next one");
}

/* A rule for one user does not reach another, in each place that asks. */
static void addresses_may_be_for_one_user(void **state)
{
	struct daemon *d = *state;
	uid_t uids[] = { BOB };
	int out = memfd_create("out", MFD_CLOEXEC);
	const struct wish samples = { .hz = 99 }, stacks = { .option = "userstacktrace" };
	struct client alice, bob;

	rules(d)->raw_addresses = (struct user_list){ .uids = uids, .count = 1 };
	greet_as(d, &alice, ALICE);
	greet_as(d, &bob, BOB);
	assert_error(wish_for(d, &alice, &samples), EPERM, "raw_addresses");
	assert_granted(d, &bob, &samples);
	assert_error(wish_for(d, &alice, &stacks), EPERM, "raw_addresses");
	assert_granted(d, &bob, &stacks);
	start_ok(d, &alice, "a", false);
	assert_true(fakes.hide_addresses);
	start_ok(d, &bob, "b", false);
	assert_false(fakes.hide_addresses);
	assert_error(ask(d, &alice, stop_request("a", "raw"), out), EPERM, "raw_addresses");
	done_with(ask(d, &bob, stop_request("b", "raw"), out));
	assert_output(out, STREAM_MAGIC "end 0");
	rules(d)->raw_addresses = (struct user_list){ 0 };
	client_close(&alice);
	client_close(&bob);
	close(out);
}

static void what_reaches_beyond_is_roots(void **state)
{
	static const struct {
		struct wish wish;
		const char *part;
	} refused[] = {
		{ { .kprobe = "p:x do_exit" }, "sudo" },
		{ { .kprobe = "p:x do_exit a=+0(%di):u64" }, "sudo" },
		{ { .uprobe = "p:x /bin/sh:0x10 a=+0(%di):string" }, "sudo" },
		{ { .hz = 99 }, "raw_addresses = yes" },
		{ { .top_level = true }, "top_level = yes" },
		{ { .option = "trace_printk_dest" }, "other users' output" },
		{ { .option = "copy_trace_marker" }, "other users' output" },
		{ { .option = "userstacktrace" }, "raw_addresses = yes" },
		{ { .option = "sym-userobj" }, "raw_addresses = yes" },
		{ { .function = "do_exit:traceoff" }, "triggers" },
		{ { .function = "do_exit:mod:x:dump" }, "triggers" },
		{ { .tracer = "function" }, "of all processes" },
		{ { .function = "vfs_*:mod:ext4" }, "of all processes" },
		{ { .tracer = "function_graph" }, "-F -- COMMAND" },
		/* The kernel has one list for all. */
		{ { .tracer = "function_graph", .graph_root = "vfs_read" }, "all recordings" },
		{ { .tracer = "function_graph", .depth = 2 }, "all recordings" },
	};
	struct daemon *d = *state;
	struct client alice, root;

	greet_as(d, &alice, ALICE);
	greet_as(d, &root, 0);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		assert_error(wish_for(d, &alice, &refused[i].wish), EPERM, refused[i].part);
		assert_granted(d, &root, &refused[i].wish);
	}
	rules(d)->top_level = rules(d)->raw_addresses.all = true;
	rules(d)->functions = USER_FUNCTIONS_YES;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		const struct wish *w = &refused[i].wish;

		if (w->kprobe || w->uprobe || strstr(refused[i].part, "triggers") ||
		    strstr(refused[i].part, "other users") ||
		    strstr(refused[i].part, "all recordings"))
			assert_error(wish_for(d, &alice, w), EPERM, refused[i].part);
		else
			assert_granted(d, &alice, w);
	}
	client_close(&alice);
	client_close(&root);
}

/* Matching costs the product of a glob and all names. */
static void globs_are_bounded(void **state)
{
	Traced__Control__EventSpec specs[40], *list[ARRAY_SIZE(specs)];
	Traced__Control__EventsQuery query = TRACED__CONTROL__EVENTS_QUERY__INIT;
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	char glob[258], function[1026], *functions[33];
	REQUEST(lists, EVENTS, events, query);
	REQUEST(request, START, start, message);
	struct daemon *d = *state;
	struct client alice, root;

	greet_as(d, &alice, ALICE);
	greet_as(d, &root, 0);
	memset(glob, '*', sizeof(glob) - 1);
	glob[sizeof(glob) - 1] = '\0';
	query.glob = glob;
	assert_error(ask(d, &root, &lists, -1), E2BIG, "256 bytes");
	assert_error(start_filtered(d, &root, glob, ""), E2BIG, "256 bytes");
	glob[256] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
		traced__control__event_spec__init(&specs[i]);
		specs[i].glob = glob;
		list[i] = &specs[i];
	}
	message.events = list;
	message.n_events = ARRAY_SIZE(specs);
	assert_error(ask(d, &alice, &request, -1), E2BIG, "8192 bytes");
	request.id = ++next_id;
	done_with(ask(d, &root, &request, -1));
	assert_int_equal(d->manager->session_count, 1);
	/* Names without a wildcard cost little. */
	memset(glob, 'x', 256);
	request.id = ++next_id;
	done_with(ask(d, &alice, &request, -1));
	assert_int_equal(d->manager->session_count, 2);
	memset(function, 'f', sizeof(function) - 1);
	function[sizeof(function) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		functions[i] = function;
	message.functions = functions;
	message.n_functions = ARRAY_SIZE(functions);
	assert_error(ask(d, &alice, &request, -1), E2BIG, "1024 bytes");
	function[10] = '\0';
	assert_error(ask(d, &alice, &request, -1), E2BIG, "32 names");
	request.id = ++next_id;
	done_with(ask(d, &root, &request, -1));
	assert_int_equal(d->manager->session_count, 3);
	client_close(&alice);
	client_close(&root);
}

/* Start may have any message in place of SQL. */
static void sql_of_a_hostile_client_is_refused(void **state)
{
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, message);
	Traced__Control__SqlSide side = TRACED__CONTROL__SQL_SIDE__INIT;
	Traced__Control__Sql sql = TRACED__CONTROL__SQL__INIT, *list[] = { &sql };
	_cleanup_free_ char *longest = calloc(1, 4002);
	struct daemon *d = *state;
	struct client alice;

	assert_non_null(longest);
	memset(longest, 'x', 4001);
	greet_as(d, &alice, ALICE);
	message.sql = list;
	message.n_sql = 1;
	sql.start = &side;
	assert_error(ask(d, &alice, &request, -1), EINVAL, "two events");
	sql.end = &side;
	side.filter = (char *)"a\n!b";
	assert_error(ask(d, &alice, &request, -1), EINVAL, "control character");
	side.filter = longest;
	assert_error(ask(d, &alice, &request, -1), E2BIG, "4000 bytes");
	client_close(&alice);
}

static void functions_of_ones_own_processes(void **state)
{
	struct daemon *d = *state;
	struct client alice;
	struct wish w = { .tracer = "function", .pid = 4242 };
	char task[sizeof(d->dir) + 8];

	snprintf(task, sizeof(task), "%s/4242", d->dir);
	assert_int_equal(mkdir(task, 0755), 0);
	d->manager->env.proc = d->dir;
	greet_as(d, &alice, ALICE);
	assert_error(wish_for(d, &alice, &w), EPERM, "not yours");
	w.pid = 4243;
	assert_error(wish_for(d, &alice, &w), ENOENT, "4243");
	w = (struct wish){ .tracer = "function", .process = 4242 };
	assert_error(wish_for(d, &alice, &w), EPERM, "not yours");
	if (chown(task, ALICE, (gid_t)-1) == 0) {
		assert_granted(d, &alice, &w);
		/* A regular expression selects no more than names and globs may. */
		assert_int_equal(fakes.names_max, 32);
		rules(d)->functions = USER_FUNCTIONS_NO;
		assert_error(wish_for(d, &alice, &w), EPERM, "functions = own");
	}
	client_close(&alice);
	assert_int_equal(rmdir(task), 0);
}

static void events_are_bounded_for_users(void **state)
{
	struct daemon *d = *state;
	struct client alice, root;

	set_words(&rules(d)->events_allowed, "sched irq");
	set_words(&rules(d)->events_denied, "sched:sched_process_exec");
	greet_as(d, &alice, ALICE);
	greet_as(d, &root, 0);
	start_ok(d, &alice, "a", false);
	assert_string_equal(fakes.only, "sched");
	assert_string_equal(fakes.never, "sched:sched_process_exec");
	start_ok(d, &root, "b", false);
	assert_string_equal(fakes.only, "");
	assert_string_equal(fakes.never, "");
	client_close(&alice);
	client_close(&root);
}

/* The worker owns the request's strings then. */
static void a_reload_while_arming_changes_nothing(void **state)
{
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, message);
	struct daemon *d = *state;
	struct client alice;
	Reply *reply;

	set_words(&rules(d)->events_denied, "kvm");
	__atomic_store_n(&fakes.arming_ms, 100, __ATOMIC_SEQ_CST);
	greet_as(d, &alice, ALICE);
	tell(&alice, &request, -1);
	turn(d, 20);
	set_words(&rules(d)->events_denied, "xfs");
	reply = hear(d, &alice);
	assert_null(reply->error);
	assert_string_equal(fakes.never, "kvm");
	done_with(reply);
	client_close(&alice);
}

static void another_records_while_a_long_one_is_armed(void **state)
{
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, message);
	struct daemon *d = *state;
	struct client alice, bob;
	struct session *s;

	greet_as(d, &alice, ALICE);
	greet_as(d, &bob, BOB);
	/* It would outlast the test's time. */
	__atomic_store_n(&fakes.arming_ms, 1000000, __ATOMIC_SEQ_CST);
	tell(&alice, &request, -1);
	turn_until(d, captures() == 1);
	s = TAILQ_FIRST(&d->manager->sessions);
	__atomic_store_n(&fakes.arming_ms, 0, __ATOMIC_SEQ_CST);
	start_ok(d, &bob, "b", false);
	assert_int_equal(s->state, SESSION_ARMING);
	/* Nobody waits for it any more: what is armed is undone. */
	client_close(&alice);
	await_captures(d, 1);
	client_close(&bob);
	await_captures(d, 0);
}

static void clients_of_one_user_leave_room_for_others(void **state)
{
	struct daemon *d = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct client some[3];

	rules(d)->clients = 3;
	for (size_t i = 0; i < ARRAY_SIZE(some); i++) {
		assert_int_equal(policy_check_client(d->manager, ALICE, &err), 0);
		greet_as(d, &some[i], ALICE);
	}
	assert_int_equal(policy_check_client(d->manager, ALICE, &err), -EUSERS);
	assert_non_null(strstr(err.hint, "\"clients\" in [users]"));
	assert_int_equal(policy_check_client(d->manager, BOB, &err), 0);
	assert_int_equal(policy_check_client(d->manager, 0, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(some); i++)
		client_close(&some[i]);
}

/* The log goes to standard error, which this reads back. */
static int listen_to_log(int *kept)
{
	int log = memfd_create("log", MFD_CLOEXEC);

	unsetenv("JOURNAL_STREAM");
	*kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	assert_true(log >= 0 && *kept >= 0);
	assert_int_equal(dup2(log, STDERR_FILENO), STDERR_FILENO);
	log_set_level(LOG_INFO);
	return log;
}

static void assert_logged(const char *log, const char *part)
{
	if (!strstr(log, part))
		fail_msg("\"%s\" is not in the log:\n%s", part, log);
}

static void who_recorded_what_is_written_down(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC), kept, log = listen_to_log(&kept);
	struct client alice;
	char text[4096] = "";
	char me[64];

	greet_as(d, &alice, ALICE);
	start_ok(d, &alice, "a", false);
	done_with(ask(d, &alice, stop_request("a", "txt"), out));
	start_ok(d, &alice, "b", true);
	session_cancel(manager_find_session(d->manager, ALICE, "b"), "cancelled");
	rules(d)->sessions = 1;
	start_ok(d, &alice, "c", false);
	done_with(start(d, &alice, "d", false, false, 0));
	/* Events and filters are refused by the worker. */
	rules(d)->sessions = 9;
	fakes.new_error = -EPERM;
	done_with(start(d, &alice, "e", false, false, 0));
	fakes.new_error = 0;
	log_set_level(LOG_EMERG);
	dup2(kept, STDERR_FILENO);
	assert_true(pread_full(log, text, sizeof(text) - 1, 0) > 0);
	snprintf(me, sizeof(me), "a: uid 1000, pid %d (test_access", getpid());
	assert_logged(text, me);
	assert_logged(text, ", records sched irq");
	assert_logged(text, "a: stopped; uid 1000 recorded ");
	assert_logged(text, ", 3 events, 0 lost, ");
	assert_logged(text, "b: cancelled; uid 1000 recorded ");
	assert_logged(text, "refused to uid 1000, pid ");
	assert_logged(text, "you have 1 session,");
	assert_logged(text, "): no such event");
	client_close(&alice);
	close(out);
	close(log);
	close(kept);
}

static void refuse(struct daemon *d, uid_t uid, unsigned times)
{
	struct connection c = {
		.manager = d->manager, .uid = uid, .account = uid, .pid = getpid()
	};
	struct error err = { .code = EPERM, .message = (char *)"a test" };

	while (times--)
		audit_refused(&c, &err);
}

static size_t logged_refusals(const char *log, uid_t uid)
{
	char text[64];

	snprintf(text, sizeof(text), "refused to uid %u,", uid);
	return occurrences(log, text);
}

static void refusals_of_one_user_hide_no_others(void **state)
{
	int kept, log = listen_to_log(&kept);
	struct daemon *d = *state;
	static char text[64 << 10];

	refuse(d, 9000, 40);
	refuse(d, 9001, 1);
	/* More users than the daemon remembers: memory is bounded, and every user is served. */
	for (uid_t uid = 2000; uid < 2200; uid++)
		refuse(d, uid, 1);
	log_set_level(LOG_EMERG);
	dup2(kept, STDERR_FILENO);
	assert_true(pread_full(log, text, sizeof(text) - 1, 0) > 0);
	assert_int_equal(logged_refusals(text, 9000), 20);
	assert_int_equal(logged_refusals(text, 9001), 1);
	for (uid_t uid = 2000; uid < 2200; uid++)
		assert_int_equal(logged_refusals(text, uid), 1);
	close(log);
	close(kept);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SERVICE_TEST(who_recorded_what_is_written_down),
		SERVICE_TEST(names_belong_to_their_users),
		SERVICE_TEST(subordinate_ids_count_as_their_owner),
		SERVICE_TEST(each_user_has_so_many_sessions),
		SERVICE_TEST(subordinate_ids_count_with_their_owner),
		SERVICE_TEST(users_together_leave_sessions_for_root),
		SERVICE_TEST(ring_buffers_are_counted_for_each_user),
		SERVICE_TEST(ring_buffers_of_all_users_are_counted),
		SERVICE_TEST(users_leave_free_space_for_root),
		SERVICE_TEST(snapshots_to_failing_outputs_count),
		SERVICE_TEST(names_do_not_exceed_the_limit),
		SERVICE_TEST(kept_recordings_are_few),
		SERVICE_TEST(a_flight_recorder_fits_into_its_spool),
		SERVICE_TEST(a_users_recordings_fill_no_more_than_their_part),
		SERVICE_TEST(a_users_time_is_bounded),
		SERVICE_TEST(addresses_are_roots),
		SERVICE_TEST(addresses_may_be_for_one_user),
		SERVICE_TEST(histograms_alone_are_a_users),
		SERVICE_TEST(what_a_session_records_is_clipped),
		SERVICE_TEST(few_snapshots_are_written_at_once),
		SERVICE_TEST(filters_of_users_hide_addresses),
		SERVICE_TEST(what_reaches_beyond_is_roots),
		SERVICE_TEST(globs_are_bounded),
		SERVICE_TEST(sql_of_a_hostile_client_is_refused),
		SERVICE_TEST(functions_of_ones_own_processes),
		SERVICE_TEST(events_are_bounded_for_users),
		SERVICE_TEST(a_reload_while_arming_changes_nothing),
		SERVICE_TEST(another_records_while_a_long_one_is_armed),
		SERVICE_TEST(refusals_of_one_user_hide_no_others),
		SERVICE_TEST(clients_of_one_user_leave_room_for_others),
	};
	int r = service_test_begin(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
