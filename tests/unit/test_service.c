/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service_harness.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/service/connection.h"
#include "daemon/service/job.h"
#include "daemon/service/session.h"
#include "traced/stream.h"

static void a_recording_is_written_and_its_spool_goes(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;
	Reply *reply;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	assert_int_equal(spool_files(d, false), 1);
	assert_string_equal(fakes.events, "sched irq");
	feed();
	turn(d, 20);
	feed();
	turn(d, 20);
	reply = ask(d, &c, stop_request("a", "txt"), out);
	assert_null(reply->error);
	assert_int_equal(reply->body_case, TRACED__CONTROL__REPLY__BODY_FINISHED);
	assert_int_equal(reply->finished->result->events, 3);
	assert_string_equal(reply->finished->session->name, "a");
	assert_int_equal(reply->finished->session->n_cpus, 2);
	assert_true(reply->finished->session->cpus[1]->offline);
	assert_string_equal(reply->finished->session->warnings[0], "a warning");
	done_with(reply);
	assert_output(out, STREAM_MAGIC "data data end 0");
	turn(d, 5);
	assert_int_equal(spool_files(d, false), 0);
	assert_int_equal(d->manager->session_count, 0);
	client_close(&c);
	close(out);
}

static void start_streamed(struct daemon *d, struct client *c, const char *name)
{
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, message);
	Reply *reply;

	message.name = (char *)name;
	message.detached = message.stream = true;
	reply = ask(d, c, &request, -1);
	assert_null(reply->error);
	done_with(reply);
}

static Request *follow_request(const char *name, const char *format)
{
	Request *request = attach_request(name, format);

	request->attach->output->stream = true;
	return request;
}

static void a_stream_is_written_while_it_records(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC), unused = memfd_create("unused", MFD_CLOEXEC);
	struct client c, other;
	struct session *s;
	uint64_t id;
	Reply *reply;

	greet(d, &c);
	greet(d, &other);
	start_streamed(d, &c, "a");
	tell(&c, follow_request("a", "txt"), out);
	id = next_id;
	for (int i = 0; i < 100 && lseek(out, 0, SEEK_END) < STREAM_MAGIC_SIZE + 5; i++) {
		feed();
		turn(d, 20);
	}
	s = manager_find_session(d->manager, "a");
	assert_non_null(s);
	assert_true(session_records(s));
	for (int i = 0; i < 100 && !s->spool.holes; i++) {
		feed();
		turn(d, 20);
	}
	assert_true(s->spool.holes > 0 &&
		    s->spool.given_back == STREAM_MAGIC_SIZE + s->spool.holes);
	assert_error(ask(d, &other, attach_request("a", "txt"), unused), EBUSY, "while it records");
	assert_error(ask(d, &other, stop_request("a", "txt"), unused), EBUSY, "while it records");
	reply = ask(d, &other, stop_request("a", NULL), -1);
	assert_null(reply->error);
	done_with(reply);
	reply = hear(d, &c);
	assert_int_equal(reply->id, id);
	assert_null(reply->error);
	assert_int_equal(reply->finished->result->bytes, lseek(out, 0, SEEK_END));
	assert_int_equal(reply->finished->session->state,
			 TRACED__CONTROL__SESSION__STATE__EXPORTING);
	done_with(reply);
	turn(d, 5);
	assert_int_equal(spool_files(d, false), 0);
	assert_int_equal(d->manager->session_count, 0);
	client_close(&c);
	client_close(&other);
	close(out);
	close(unused);
}

static void who_leaves_a_stream_ends_it(void **state)
{
	struct daemon *d = *state;
	struct client c, other;
	Reply *reply;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	greet(d, &c);
	greet(d, &other);
	start_streamed(d, &c, "a");
	tell(&other, attach_request("a", NULL), -1);
	tell(&c, follow_request("a", "txt"), ends[1]);
	reply = hear(d, &c);
	assert_int_equal(reply->error->code, EPIPE);
	done_with(reply);
	assert_error(hear(d, &other), ECANCELED, "has left");
	await_captures(d, 0);
	assert_int_equal(spool_files(d, false), 0);
	assert_int_equal(d->manager->session_count, 0);
	client_close(&c);
	client_close(&other);
	close(ends[1]);
}

/* What the exporter had not written is the only copy. */
static void a_stream_that_fails_leaves_its_spool(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;

	greet(d, &c);
	start_streamed(d, &c, "a");
	assert_error(ask(d, &c, follow_request("a", "fail"), out), ENOSPC, "not written yet");
	await_captures(d, 0);
	assert_int_equal(spool_files(d, true), 1);
	assert_int_equal(d->manager->session_count, 0);
	client_close(&c);
	close(out);
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
	turn(d, 40);
	assert_int_equal(d->manager->session_count, 1);
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

static void a_client_that_left_an_output_gets_it_written(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	tell(&c, attach_request("a", "txt"), out);
	turn(d, 10);
	client_close(&c);
	turn(d, 10);
	for (int i = 0; i < 500 && d->manager->session_count; i++)
		turn(d, 10);
	assert_output(out, STREAM_MAGIC "end 0");
	assert_int_equal(spool_files(d, false), 0);
	close(out);
}

static void a_failed_export_keeps_the_recording(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	assert_error(ask(d, &c, stop_request("a", "fail"), out), ENOSPC,
		     "make room; the recording is safe: ");
	assert_int_equal(spool_files(d, true), 1);
	start_ok(d, &c, "a", false);
	assert_error(ask(d, &c, stop_request("a", "crash"), out), EIO, "signal 9");
	assert_int_equal(spool_files(d, true), 1);
	start_ok(d, &c, "a", false);
	assert_error(ask(d, &c, stop_request("a", "mute"), out), EIO, "");
	client_close(&c);
	close(out);
}

/* What was said to be safe stays so, whatever comes after it. */
static void one_export_that_failed_keeps_the_recording_for_all(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC), bad = memfd_create("bad", MFD_CLOEXEC);
	bool failed = false, written = false;
	struct client c;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	tell(&c, attach_request("a", "fail"), bad);
	turn(d, 10);
	tell(&c, stop_request("a", "txt"), out);
	for (int i = 0; i < 2; i++) {
		Reply *reply = hear(d, &c);

		if (reply->error)
			failed = strstr(reply->error->hint, "is safe: ") &&
				 reply->error->hint_needs_output;
		else
			written = true;
		done_with(reply);
	}
	assert_true(failed && written);
	turn_until(d, d->manager->session_count == 0);
	assert_int_equal(spool_files(d, true), 1);
	client_close(&c);
	close(out);
	close(bad);
}

static void a_pipe_of_a_client_that_left_holds_nothing(void **state)
{
	struct daemon *d = *state;
	struct client c;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	greet(d, &c);
	/* One whose export runs, and one whose export would begin now. */
	start_ok(d, &c, "a", false);
	tell(&c, stop_request("a", "hang"), ends[1]);
	turn_until(d, d->manager->job_count);
	start_ok(d, &c, "b", false);
	tell(&c, attach_request("b", "hang"), ends[1]);
	turn(d, 10);
	client_close(&c);
	turn_until(d, d->manager->job_count == 0 && d->manager->session_count == 0);
	assert_int_equal(spool_files(d, true), 2);
	close(ends[0]);
	close(ends[1]);
}

/* The pipe's export is given up, and its session, which ends with it, settles the other request. */
static void who_leaves_with_two_requests_of_a_stream_leaves_none(void **state)
{
	struct daemon *d = *state;
	struct client c, other;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	greet(d, &c);
	greet(d, &other);
	start_streamed(d, &c, "a");
	tell(&other, follow_request("a", "txt"), ends[1]);
	turn(d, 20);
	for (int i = 0; i < 3; i++)
		tell(&other, attach_request("a", NULL), -1);
	turn(d, 20);
	assert_true(session_is_followed(manager_find_session(d->manager, "a")));
	client_close(&other);
	turn_until(d, d->manager->job_count == 0 && d->manager->session_count == 0);
	assert_int_equal(spool_files(d, true), 1);
	client_close(&c);
	close(ends[0]);
	close(ends[1]);
}

/* sysfs makes no holes. */
static void a_spool_knows_that_it_gives_nothing_back(void **state _unused_)
{
	struct spool s = SPOOL_INIT;

	s.fd = open("/sys/module/printk/parameters/time", O_RDWR | O_CLOEXEC);
	if (s.fd < 0)
		skip();
	assert_int_equal(spool_give_back(&s, STREAM_MAGIC_SIZE, 4096), -EOPNOTSUPP);
	assert_true(s.keeps);
	spool_deinit(&s);
}

/* Its exporter is no help: others have made room, or the spool's file system never will. */
static void a_paused_recording_goes_on_or_ends(void **state)
{
	struct daemon *d = *state;
	struct client c;
	struct session *s;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	greet(d, &c);
	start_streamed(d, &c, "a");
	tell(&c, follow_request("a", "hang"), ends[1]);
	turn(d, 20);
	s = manager_find_session(d->manager, "a");
	assert_true(session_is_followed(s));
	assert_int_equal(ftruncate(s->spool.fd, 20 << 20), 0);
	for (int keeps = 0; keeps < 2; keeps++) {
		d->manager->config.min_free = UINT64_MAX / 2;
		feed();
		turn_until(d, s->draining.paused);
		if (keeps)
			break;
		d->manager->config.min_free = 0;
		turn_until(d, !s->draining.paused);
	}
	s->spool.keeps = true;
	turn_until(d, !session_records(s));
	client_close(&c);
	turn_until(d, d->manager->session_count == 0);
	assert_int_equal(spool_files(d, true), 1);
	close(ends[0]);
	close(ends[1]);
}

/* Its client's process, which makes the files, could not. */
static void what_becomes_files_is_kept_when_they_fail(void **state)
{
	static const struct {
		const char *format;
		unsigned kept;
	} table[] = { { "files", 1 }, { "txt", 0 } };
	struct daemon *d = *state;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct client c;
		Reply *reply;
		int ends[2];

		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		close(ends[0]);
		greet(d, &c);
		start_ok(d, &c, "a", false);
		reply = ask(d, &c, stop_request("a", table[i].format), ends[1]);
		assert_int_equal(reply->error->code, EPIPE);
		assert_int_equal(strstr(reply->error->hint, "is safe") != NULL, table[i].kept);
		done_with(reply);
		turn_until(d, d->manager->session_count == 0);
		assert_int_equal(spool_files(d, true), table[i].kept);
		client_close(&c);
		close(ends[1]);
	}
}

static void an_exporter_can_not_make_up_errnos(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	assert_error(ask(d, &c, stop_request("a", "lie"), out), EIO, "no errno");
	assert_int_equal(spool_files(d, true), 1);
	client_close(&c);
	close(out);
}

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

static void a_slow_export_holds_nobody_up(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC), out2 = memfd_create("out", MFD_CLOEXEC);
	Traced__Control__Cancel cancel = TRACED__CONTROL__CANCEL__INIT;
	REQUEST(cancel_request, CANCEL, cancel, cancel);
	struct client c, other;
	Reply *reply;

	cancel.session = (char *)"slow";
	greet(d, &c);
	greet(d, &other);
	start_ok(d, &c, "slow", false);
	start_ok(d, &other, "a", false);
	tell(&c, stop_request("slow", "hang"), out);
	turn(d, 50);
	/* To want nothing of it takes nothing from who waits. */
	reply = ask(d, &other, stop_request("slow", NULL), -1);
	assert_null(reply->error);
	assert_int_equal(reply->finished->session->state,
			 TRACED__CONTROL__SESSION__STATE__EXPORTING);
	done_with(reply);
	reply = ask(d, &other, stop_request("a", "txt"), out2);
	assert_null(reply->error);
	done_with(reply);
	/* Cancel kills the exporter. */
	reply = ask(d, &other, &cancel_request, -1);
	assert_null(reply->error);
	done_with(reply);
	assert_error(hear(d, &c), ECANCELED, "cancelled");
	assert_int_equal(spool_files(d, false), 0);
	client_close(&c);
	client_close(&other);
	close(out);
	close(out2);
}

static void an_output_is_checked_before_the_recording_ends(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC), null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct client c;
	Reply *reply;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	assert_error(ask(d, &c, stop_request("a", "yaml"), out), EINVAL, "\"yaml\"");
	assert_error(ask(d, &c, stop_request("a", "txt"), -1), EBADF, "has no descriptor for it");
	assert_error(ask(d, &c, stop_request("a", "txt"), null), EBADF, "not open for writing");
	reply = ask(d, &c, stop_request("b", "txt"), out);
	assert_false(reply->error->hint_needs_output);
	assert_error(reply, ENOENT, "\"b\"");
	await_captures(d, 1);
	client_close(&c);
	close(out);
	close(null);
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
	for (int i = 0; i < 20; i++) {
		if (captures())
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
	start_ok(d, &c, "a", false);
	assert_error(start(d, &c, "b", false, false, 0), EUSERS, "limit");
	client_close(&c);
}

static void a_flight_recorder_gives_snapshots(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	Traced__Control__Snapshot snapshot = TRACED__CONTROL__SNAPSHOT__INIT;
	Traced__Control__Output output = TRACED__CONTROL__OUTPUT__INIT;
	REQUEST(request, SNAPSHOT, snapshot, snapshot);
	struct client c;
	Reply *reply;

	output.format = (char *)"txt";
	snapshot.session = (char *)"ring";
	snapshot.output = &output;
	greet(d, &c);
	done_with(start(d, &c, "ring", true, true, 0));
	assert_int_equal(spool_files(d, false), 0);
	reply = ask(d, &c, &request, out);
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
	start_ok(d, &c, "plain", false);
	snapshot.session = (char *)"plain";
	request.id = ++next_id;
	reply = ask(d, &c, &request, out);
	assert_true(reply->error->hint_needs_output);
	assert_error(reply, EINVAL, "--ring, or end it: tracectl stop plain -o");
	client_close(&c);
	close(out);
}

static void others_keep_their_hands_off(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	Traced__Control__StatusQuery query = TRACED__CONTROL__STATUS_QUERY__INIT;
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
	{
		REQUEST(request, STATUS, status, query);
		reply = ask(d, &other, &request, -1);
		assert_int_equal(reply->status->n_sessions, 0);
		done_with(reply);
		request.id = ++next_id;
		reply = ask(d, &owner, &request, -1);
		assert_int_equal(reply->status->n_sessions, 1);
		assert_int_equal(reply->status->sessions[0]->uid, 1000);
		assert_true(reply->status->rss_bytes > 0);
		done_with(reply);
	}
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

static void extraction_runs_beside_the_loop(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	Traced__Control__Extract extract = TRACED__CONTROL__EXTRACT__INIT;
	Traced__Control__Output output = TRACED__CONTROL__OUTPUT__INIT;
	REQUEST(request, EXTRACT, extract, extract);
	struct client c;
	Reply *reply;

	output.format = (char *)"txt";
	extract.output = &output;
	greet(d, &c);
	TAILQ_FIRST(&d->manager->connections)->uid = 0;
	reply = ask(d, &c, &request, out);
	assert_null(reply->error);
	done_with(reply);
	assert_output(out, STREAM_MAGIC "top");
	extract.instance = (char *)"absent";
	request.id = ++next_id;
	assert_error(ask(d, &c, &request, out), ENOENT, "absent");
	assert_int_equal(spool_files(d, false), 0);
	client_close(&c);
	close(out);
}

static void a_ring_that_never_runs_dry_starves_nobody(void **state)
{
	struct daemon *d = *state;
	Traced__Control__StatusQuery query = TRACED__CONTROL__STATUS_QUERY__INIT;
	struct client c;
	uint64_t begin;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	fakes.always_more = true;
	feed();
	turn(d, 10);
	begin = now_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < 20; i++) {
		REQUEST(request, STATUS, status, query);
		done_with(ask(d, &c, &request, -1));
	}
	assert_true(now_ns(CLOCK_MONOTONIC) - begin < 2 * NSEC_PER_SEC);
	assert_true(fakes.dispatches > 100);
	client_close(&c);
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
	Traced__Control__StatusQuery query = TRACED__CONTROL__STATUS_QUERY__INIT;
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
	{
		REQUEST(request, STATUS, status, query);
		tell(&bad, &request, -1);
	}
	assert_error(hear(d, &bad), EPROTO, "Hello");
	assert_dropped(d, &bad);

	client_open(d, &bad); /* half a frame, then gone */
	assert_int_equal(write(bad.fd, huge, 3), 3);
	turn(d, 5);
	client_close(&bad);

	{
		REQUEST(request, STATUS, status, query);
		reply = ask(d, &good, &request, -1);
		assert_int_equal(reply->status->n_sessions, 1);
		done_with(reply);
	}
	assert_int_equal(d->manager->connection_count, 1);
	client_close(&good);
}

static void who_does_not_read_is_dropped(void **state)
{
	struct daemon *d = *state;
	Traced__Control__EventsQuery query = TRACED__CONTROL__EVENTS_QUERY__INIT;
	struct client c;

	greet(d, &c);
	for (int i = 0; i < 1000000 && d->manager->connection_count; i++) {
		REQUEST(request, EVENTS, events, query);
		if (frame_queue(&c.io, &request.base, NULL, 0) < 0 || frame_flush(&c.io) < 0)
			break;
		if (i % 64 == 0)
			turn(d, 1);
	}
	for (int i = 0; i < 200 && d->manager->connection_count; i++)
		turn(d, 20);
	assert_int_equal(d->manager->connection_count, 0);
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
	daemon_stop(d);
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
	daemon_stop(d);
	reply = hear(d, &c);
	assert_null(reply->error);
	warnings = reply->finished->session->n_warnings;
	assert_non_null(
		strstr(reply->finished->session->warnings[warnings - 1], "traced was stopped"));
	done_with(reply);
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
	daemon_stop(d);
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
	daemon_stop(d);
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
	s = manager_find_session(m, "a");
	j = TAILQ_FIRST(&s->jobs);
	turn_until(d, TAILQ_EMPTY(&m->over.jobs));
	session_cancel(s, "a test ends it");
	assert_int_equal(s->state, SESSION_OVER);
	assert_true(j->over && !j->session && !j->connection);
	assert_ptr_equal(TAILQ_FIRST(&m->over.sessions), s);
	assert_ptr_equal(TAILQ_FIRST(&m->over.jobs), j);
	assert_null(manager_find_session(m, "a"));
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

static Reply *status(struct daemon *d, struct client *c)
{
	Traced__Control__StatusQuery query = TRACED__CONTROL__STATUS_QUERY__INIT;
	REQUEST(request, STATUS, status, query);

	return ask(d, c, &request, -1);
}

/* Leaves the session's arming under way. Returns the id to which Start is still to be answered. */
static uint64_t tell_start(struct daemon *d, struct client *c, const char *name, bool detached,
			   bool ring)
{
	Traced__Control__Start start = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, start);

	__atomic_store_n(&fakes.arming_ms, 200, __ATOMIC_SEQ_CST);
	start.name = (char *)name;
	start.detached = detached;
	start.ring = ring;
	tell(c, &request, -1);
	turn_until(d, !TAILQ_EMPTY(&d->manager->sessions) &&
			      TAILQ_FIRST(&d->manager->sessions)->state == SESSION_ARMING);
	return request.id;
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
	reply = status(d, &other);
	assert_null(reply->error);
	assert_int_equal(reply->status->n_sessions, 1);
	assert_string_equal(reply->status->sessions[0]->name, "a");
	assert_int_equal(reply->status->sessions[0]->state,
			 TRACED__CONTROL__SESSION__STATE__ARMING);
	done_with(reply);
	assert_int_equal(captures(), 0);
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

static void who_asked_for_it_may_go_while_it_is_armed(void **state)
{
	struct daemon *d = *state;
	Traced__Control__Cancel cancel = TRACED__CONTROL__CANCEL__INIT;
	Traced__Control__Snapshot snapshot = TRACED__CONTROL__SNAPSHOT__INIT;
	REQUEST(cancel_request, CANCEL, cancel, cancel);
	REQUEST(snapshot_request, SNAPSHOT, snapshot, snapshot);
	struct client c, other;

	greet(d, &c);
	greet(d, &other);
	tell_start(d, &c, "a", false, false);
	client_close(&c);
	turn_until(d, d->manager->session_count == 0);
	/* Its name is free; the other's instance is gone before a new one is made. */
	tell_start(d, &other, "a", true, true);
	snapshot.session = cancel.session = (char *)"a";
	assert_error(ask(d, &other, &snapshot_request, -1), EAGAIN, "does not record yet");
	tell(&other, &cancel_request, -1);
	assert_error(hear(d, &other), ECANCELED, "cancelled");
	done_with(hear(d, &other));
	turn(d, 500);
	await_captures(d, 0);
	assert_int_equal(spool_files(d, false), 0);
	client_close(&other);
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

static void a_stop_of_the_daemon_does_not_wait_for_arming(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	tell_start(d, &c, "a", true, false);
	daemon_stop(d);
	assert_error(hear(d, &c), ECANCELED, "the daemon stops");
	turn_until(d, loop_has_ended(d->loop));
	/* What it armed is taken down again by manager_free(), as the teardown checks. */
	assert_int_equal(spool_files(d, false), 0);
	client_close(&c);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SERVICE_TEST(a_recording_is_written_and_its_spool_goes),
		SERVICE_TEST(a_duration_ends_it_for_who_waits),
		SERVICE_TEST(what_ended_by_itself_waits_to_be_fetched),
		SERVICE_TEST(a_detached_session_outlives_who_waits_for_it),
		SERVICE_TEST(two_at_once_and_no_two_of_a_name),
		SERVICE_TEST(a_client_that_left_an_output_gets_it_written),
		SERVICE_TEST(a_failed_export_keeps_the_recording),
		SERVICE_TEST(one_export_that_failed_keeps_the_recording_for_all),
		SERVICE_TEST(a_pipe_of_a_client_that_left_holds_nothing),
		SERVICE_TEST(who_leaves_with_two_requests_of_a_stream_leaves_none),
		SERVICE_TEST(a_paused_recording_goes_on_or_ends),
		cmocka_unit_test(a_spool_knows_that_it_gives_nothing_back),
		SERVICE_TEST(what_becomes_files_is_kept_when_they_fail),
		SERVICE_TEST(an_exporter_can_not_make_up_errnos),
		SERVICE_TEST(a_mark_fails_only_if_nobody_took_it),
		SERVICE_TEST(a_sync_tells_when_it_was_done),
		SERVICE_TEST(a_lack_of_descriptors_passes),
		SERVICE_TEST(a_slow_export_holds_nobody_up),
		SERVICE_TEST(an_output_is_checked_before_the_recording_ends),
		SERVICE_TEST(a_full_spool_ends_it_with_what_there_is),
		SERVICE_TEST(a_start_that_fails_leaves_nothing),
		SERVICE_TEST(a_flight_recorder_gives_snapshots),
		SERVICE_TEST(others_keep_their_hands_off),
		SERVICE_TEST(extraction_runs_beside_the_loop),
		SERVICE_TEST(a_ring_that_never_runs_dry_starves_nobody),
		SERVICE_TEST(hostile_clients_hurt_only_themselves),
		SERVICE_TEST(who_does_not_read_is_dropped),
		SERVICE_TEST(requests_in_flight_are_bounded),
		SERVICE_TEST(a_stop_of_the_daemon_finishes_what_is_awaited),
		SERVICE_TEST(who_waits_for_the_end_can_send_for_it_when_the_daemon_stops),
		SERVICE_TEST(what_nobody_sends_for_is_kept_when_the_daemon_stops),
		SERVICE_TEST(who_watches_is_told_where_it_is_when_the_daemon_stops),
		SERVICE_TEST(an_end_frees_nothing_before_the_loop_goes_on),
		SERVICE_TEST(no_tracefs_is_an_answer),
		SERVICE_TEST(arming_holds_nobody_up),
		SERVICE_TEST(a_stop_while_arming_ends_it_once_armed),
		SERVICE_TEST(a_stream_is_written_while_it_records),
		SERVICE_TEST(who_leaves_a_stream_ends_it),
		SERVICE_TEST(a_stream_that_fails_leaves_its_spool),
		SERVICE_TEST(who_asked_for_it_may_go_while_it_is_armed),
		SERVICE_TEST(arming_that_fails_is_told_to_all),
		SERVICE_TEST(a_stop_of_the_daemon_does_not_wait_for_arming),
	};

	int r = service_test_begin(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
