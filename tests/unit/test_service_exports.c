/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Exports, after a recording or during it. */
#include "service_harness.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "daemon/service/connection.h"
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
	for (unsigned fed = 0; fed < 2; fed++) {
		unsigned before = fakes.dispatches;

		feed();
		turn_until(d, fakes.dispatches > before);
	}
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
	turn_until(d, d->manager->session_count == 0);
	assert_int_equal(spool_files(d, false), 0);
	client_close(&c);
	close(out);
}

static void a_client_that_left_an_output_gets_it_written(void **state)
{
	struct daemon *d = *state;
	char path[] = "/tmp/traced-test.XXXXXX";
	int out = mkstemp(path);
	struct client c;

	assert_true(out >= 0);
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
	unlink(path);
	close(out);
}

/* The client would have given the file its name. */
static void a_recording_is_kept_if_its_output_has_no_name(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;

	greet(d, &c);
	start_ok(d, &c, "a", true);
	tell(&c, stop_request("a", "hang"), out);
	turn_until(d, d->manager->job_count);
	client_close(&c);
	turn_until(d, d->manager->job_count == 0 && d->manager->session_count == 0);
	assert_int_equal(spool_files(d, true), 1);
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

/* A recording that an error called safe stays, whatever follows. */
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

static void a_slow_export_holds_nobody_up(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC), out2 = memfd_create("out", MFD_CLOEXEC);
	struct client c, other;
	Reply *reply;

	greet(d, &c);
	greet(d, &other);
	start_ok(d, &c, "slow", false);
	start_ok(d, &other, "a", false);
	tell(&c, stop_request("slow", "hang"), out);
	turn_until(d,
		   manager_find_session(d->manager, geteuid(), "slow")->state == SESSION_EXPORTING);
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
	reply = ask(d, &other, cancel_request("slow"), -1);
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
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), event = eventfd(0, EFD_CLOEXEC);
	struct client c;
	Reply *reply;

	greet(d, &c);
	start_ok(d, &c, "a", false);
	assert_error(ask(d, &c, stop_request("a", "txt"), tcp), EBADF, "neither a file, a pipe");
	assert_error(ask(d, &c, stop_request("a", "txt"), event), EBADF, "neither a file, a pipe");
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
	close(tcp);
	close(event);
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

static void start_streamed(struct daemon *d, struct client *c, const char *name)
{
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, message);
	Reply *reply;

	message.name = (char *)name;
	message.detached = message.stream = true;
	message.place = (char *)"/a/file";
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

/* An export of a recording that is over would never forget a task. */
static void conditions_are_only_watched_while_it_records(void **state)
{
	static const char why[] = "only for a recording that is followed";
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	char *conditions[] = { (char *)"lost > 0" };
	struct client c;

	greet(d, &c);
	start_streamed(d, &c, "a");
	for (unsigned i = 0; i < 2; i++) {
		Request *request = i ? attach_request("a", "watch") : stop_request("a", "watch");
		Traced__Control__Output *output =
			i ? request->attach->output : request->stop->output;

		output->conditions = conditions;
		output->n_conditions = ARRAY_SIZE(conditions);
		/* Only an attachment can follow. */
		output->stream = !i;
		assert_error(ask(d, &c, request, out), EINVAL, why);
		assert_true(session_records(manager_find_session(d->manager, geteuid(), "a")));
	}
	client_close(&c);
	close(out);
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
	s = manager_find_session(d->manager, geteuid(), "a");
	assert_non_null(s);
	assert_true(session_records(s));
	for (int i = 0; i < 100 && !s->spool.holes; i++) {
		feed();
		turn(d, 20);
	}
	assert_true(s->spool.holes > 0 &&
		    s->spool.given_back == STREAM_MAGIC_SIZE + s->spool.holes);
	assert_error(ask(d, &other, attach_request("a", "txt"), unused), EBUSY, "while it records");
	assert_error(ask(d, &other, stop_request("a", "txt"), unused), EBUSY, "tracectl stop a");
	/* Root calls it by its user's number. */
	s->uid = 1000;
	TAILQ_LAST(&d->manager->connections, connection_list)->uid = 0;
	assert_error(ask(d, &other, stop_request("1000/a", "txt"), unused), EBUSY,
		     "tracectl stop 1000/a");
	s->uid = geteuid();
	TAILQ_LAST(&d->manager->connections, connection_list)->uid = geteuid();
	/* It waits for the file, and has its result. */
	reply = ask(d, &other, stop_request("a", NULL), -1);
	assert_null(reply->error);
	assert_non_null(reply->finished->result);
	assert_int_equal(reply->finished->result->bytes, lseek(out, 0, SEEK_END));
	assert_string_equal(reply->finished->session->place, "/a/file");
	done_with(reply);
	reply = hear(d, &c);
	assert_int_equal(reply->id, id);
	assert_null(reply->error);
	assert_int_equal(reply->finished->result->bytes, lseek(out, 0, SEEK_END));
	assert_int_equal(reply->finished->session->state,
			 TRACED__CONTROL__SESSION__STATE__EXPORTING);
	done_with(reply);
	turn_until(d, d->manager->session_count == 0);
	assert_int_equal(spool_files(d, false), 0);
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

/* With its output, so that the export begins before the recording. */
static void tell_followed(struct client *c, const char *format, int fd)
{
	Traced__Control__Output output = TRACED__CONTROL__OUTPUT__INIT;
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, message);

	output.format = (char *)format;
	output.stream = true;
	message.name = (char *)"a";
	message.stream = message.follow = true;
	message.output = &output;
	tell(c, &request, fd);
}

static void a_recording_begins_once_its_export_waits(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct session *s = NULL;
	struct client c;
	Reply *reply;

	greet(d, &c);
	tell_followed(&c, "txt", out);
	turn_until(d, (s = TAILQ_FIRST(&d->manager->sessions)) && s->state == SESSION_RECORDING);
	assert_true(session_is_followed(s));
	/* Without its limit only the export's message, which may have come, lets it begin. */
	if (s->awaits_follower)
		loop_source_enable(s->begin, false);
	reply = hear(d, &c);
	assert_null(reply->error);
	done_with(reply);
	assert_true(session_starves_followers(s));
	tell(&c, stop_request("a", NULL), -1);
	for (int i = 0; i < 2; i++) {
		reply = hear(d, &c);
		assert_int_equal(reply->finished->result->events, 3);
		done_with(reply);
	}
	assert_output(out, STREAM_MAGIC "end 0");
	client_close(&c);
	close(out);
}

/* Two seconds are enough for any that does not. */
static void a_recording_begins_though_its_export_hangs(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	uint64_t began = now_ns(CLOCK_MONOTONIC);
	struct client c;
	Reply *reply;

	greet(d, &c);
	tell_followed(&c, "hang", out);
	reply = hear(d, &c);
	assert_null(reply->error);
	done_with(reply);
	assert_true(now_ns(CLOCK_MONOTONIC) - began >= 2 * NSEC_PER_SEC);
	assert_true(session_records(TAILQ_FIRST(&d->manager->sessions)));
	session_cancel(TAILQ_FIRST(&d->manager->sessions), "test");
	client_close(&c);
	await_captures(d, 0);
	close(out);
}

static void who_leaves_before_the_export_waits_has_no_recording(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;

	greet(d, &c);
	tell_followed(&c, "hang", out);
	turn_until(d, TAILQ_FIRST(&d->manager->sessions) &&
			      TAILQ_FIRST(&d->manager->sessions)->awaits_follower);
	client_close(&c);
	await_captures(d, 0);
	assert_int_equal(d->manager->session_count, 0);
	assert_int_equal(spool_files(d, false), 0);
	close(out);
}

/* There is no recording that the spool could keep. */
static void an_export_that_fails_at_the_start_ends_the_recording(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;

	greet(d, &c);
	tell_followed(&c, "fail", out);
	assert_error(hear(d, &c), ENOSPC, "make room");
	await_captures(d, 0);
	assert_int_equal(spool_files(d, false), 0);
	tell_followed(&c, "txt", -1);
	assert_error(hear(d, &c), EBADF, "no descriptor");
	assert_int_equal(d->manager->session_count, 0);
	client_close(&c);
	close(out);
}

/* The spool holds the only copy of the data that the exporter did not write. */
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

static void a_stop_has_the_error_of_the_files(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c, other;
	Reply *reply;

	greet(d, &c);
	greet(d, &other);
	start_streamed(d, &c, "a");
	tell(&c, follow_request("a", "late"), out);
	turn_until(d, session_is_followed(manager_find_session(d->manager, geteuid(), "a")));
	reply = ask(d, &other, stop_request("a", NULL), -1);
	assert_null(reply->error);
	assert_int_equal(reply->finished->result->error->code, ENOSPC);
	done_with(reply);
	assert_error(hear(d, &c), ENOSPC, "at the end");
	await_captures(d, 0);
	assert_int_equal(spool_files(d, true), 1);
	client_close(&c);
	client_close(&other);
	close(out);
}

/* A pipe may have no reader who reads. */
static void a_stop_does_not_wait_for_a_pipe(void **state)
{
	struct daemon *d = *state;
	struct client c, other;
	Reply *reply;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	greet(d, &c);
	greet(d, &other);
	start_streamed(d, &c, "a");
	tell(&c, follow_request("a", "hang"), ends[1]);
	turn_until(d, session_is_followed(manager_find_session(d->manager, geteuid(), "a")));
	reply = ask(d, &other, stop_request("a", NULL), -1);
	assert_null(reply->error);
	assert_null(reply->finished->result);
	done_with(reply);
	client_close(&c);
	client_close(&other);
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
	assert_true(session_is_followed(manager_find_session(d->manager, geteuid(), "a")));
	client_close(&other);
	turn_until(d, d->manager->job_count == 0 && d->manager->session_count == 0);
	assert_int_equal(spool_files(d, true), 1);
	client_close(&c);
	close(ends[0]);
	close(ends[1]);
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
	s = manager_find_session(d->manager, geteuid(), "a");
	assert_true(session_is_followed(s));
	assert_int_equal(ftruncate(s->spool.fd, 20 << 20), 0);
	for (int keeps = 0; keeps < 2; keeps++) {
		d->manager->config.min_free = UINT64_MAX / 2;
		feed();
		turn_until(d, draining_is_paused(s->draining));
		if (keeps)
			break;
		d->manager->config.min_free = 0;
		turn_until(d, !draining_is_paused(s->draining));
	}
	s->spool.keeps = true;
	turn_until(d, !session_records(s));
	client_close(&c);
	turn_until(d, d->manager->session_count == 0);
	assert_int_equal(spool_files(d, true), 1);
	close(ends[0]);
	close(ends[1]);
}

/* Between Start and Attach the spool may be full already. */
static void a_full_stream_waits_for_its_follower(void **state)
{
	struct daemon *d = *state;
	int out = memfd_create("out", MFD_CLOEXEC);
	struct client c;
	struct session *s;
	Reply *reply;

	greet(d, &c);
	start_streamed(d, &c, "a");
	s = manager_find_session(d->manager, geteuid(), "a");
	d->manager->config.min_free = UINT64_MAX / 2;
	feed();
	turn_until(d, draining_is_paused(s->draining));
	turn(d, 50);
	assert_true(session_records(s));
	d->manager->config.min_free = 0;
	tell(&c, follow_request("a", "txt"), out);
	turn_until(d, lseek(out, 0, SEEK_END) >= STREAM_MAGIC_SIZE + 5);
	turn_until(d, !draining_is_paused(s->draining));
	tell(&c, stop_request("a", NULL), -1);
	for (int i = 0; i < 2; i++) {
		reply = hear(d, &c);
		assert_null(reply->error);
		done_with(reply);
	}
	client_close(&c);
	close(out);
}

/* With a file of the client's for the stream; not detached. */
static Reply *start_in_file(struct daemon *d, struct client *c, int fd, bool streamed, uint64_t max)
{
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, message);

	message.name = (char *)"a";
	message.stream = streamed;
	message.client_file_max = max;
	return ask(d, c, &request, fd);
}

static Reply *start_detached_in_file(struct daemon *d, struct client *c, int fd)
{
	Traced__Control__Start message = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, message);

	message.name = (char *)"a";
	message.stream = message.detached = true;
	message.client_file_max = 1 << 20;
	return ask(d, c, &request, fd);
}

static void a_client_has_the_stream_in_its_own_file(void **state)
{
	struct daemon *d = *state;
	int file = memfd_create("file", MFD_CLOEXEC), out = memfd_create("out", MFD_CLOEXEC);
	struct client c;
	struct session *s;
	unsigned before;
	Reply *reply;

	greet(d, &c);
	reply = start_in_file(d, &c, file, true, 1 << 20);
	assert_null(reply->error);
	assert_true(reply->session->in_client_file);
	done_with(reply);
	assert_int_equal(spool_files(d, false), 0);
	before = fakes.dispatches;
	feed();
	turn_until(d, fakes.dispatches > before);
	/* Nobody else may take it. */
	assert_error(ask(d, &c, follow_request("a", "txt"), out), EBUSY, "while it records");
	/* Full, until the client has freed some of it. */
	assert_int_equal(fallocate(file, FALLOC_FL_KEEP_SIZE, 4096, 2 << 20), 0);
	s = manager_find_session(d->manager, geteuid(), "a");
	feed();
	turn_until(d, draining_is_paused(s->draining));
	assert_int_equal(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 2 << 20),
			 0);
	turn_until(d, !draining_is_paused(s->draining));
	assert_true(session_records(s));
	reply = ask(d, &c, stop_request("a", NULL), -1);
	assert_null(reply->error);
	done_with(reply);
	turn_until(d, d->manager->session_count == 0);
	assert_int_equal(lseek(file, 0, SEEK_CUR), 0);
	assert_true(lseek(file, 0, SEEK_END) > STREAM_MAGIC_SIZE + 10);
	assert_int_equal(spool_files(d, false), 0);
	client_close(&c);
	close(file);
	close(out);
}

static void a_file_for_the_stream_is_checked(void **state)
{
	struct daemon *d = *state;
	int file = memfd_create("file", MFD_CLOEXEC), other = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct client c, member;
	Reply *reply;

	greet_as(d, &member, 4711);
	assert_error(start_in_file(d, &member, file, true, 1 << 20), EPERM, "only root");
	client_close(&member);
	greet(d, &c);
	assert_error(start_in_file(d, &c, file, false, 1 << 20), EINVAL, "that its client follows");
	assert_error(start_detached_in_file(d, &c, file), EINVAL, "that its client follows");
	assert_error(start_in_file(d, &c, -1, true, 1 << 20), EINVAL, "that its client follows");
	assert_error(start_in_file(d, &c, other, true, 1 << 20), EBADF, "in memory");
	assert_int_equal(write(file, "x", 1), 1);
	assert_error(start_in_file(d, &c, file, true, 1 << 20), EBADF, "empty");
	assert_int_equal(ftruncate(file, 0), 0);
	reply = start_in_file(d, &c, file, true, 1 << 20);
	assert_null(reply->error);
	done_with(reply);
	/* It is nobody's once its client has left. */
	client_close(&c);
	turn_until(d, d->manager->session_count == 0);
	assert_int_equal(spool_files(d, false), 0);
	close(file);
	close(other);
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

/* Another process may have the descriptor for a moment. */
static void a_spool_that_is_kept_counts_at_once(void **state)
{
	struct daemon *d = *state;
	struct spool s = SPOOL_INIT;
	_cleanup_close_ int other = -EBADF;

	assert_int_equal(spool_create(&s, d->spool, "kept", 4711, 0, NULL), 0);
	assert_int_equal(ftruncate(s.fd, 4096), 0);
	assert_int_equal(spool_bytes_of(d->spool, d->manager->accounts, 4711), 0);
	other = dup(s.fd);
	spool_deinit(&s);
	assert_int_equal(spool_bytes_of(d->spool, d->manager->accounts, 4711), 4096);
	spool_files(d, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SERVICE_TEST(a_recording_is_written_and_its_spool_goes),
		SERVICE_TEST(a_client_that_left_an_output_gets_it_written),
		SERVICE_TEST(a_recording_is_kept_if_its_output_has_no_name),
		SERVICE_TEST(a_failed_export_keeps_the_recording),
		SERVICE_TEST(one_export_that_failed_keeps_the_recording_for_all),
		SERVICE_TEST(a_pipe_of_a_client_that_left_holds_nothing),
		SERVICE_TEST(what_becomes_files_is_kept_when_they_fail),
		SERVICE_TEST(an_exporter_can_not_make_up_errnos),
		SERVICE_TEST(a_slow_export_holds_nobody_up),
		SERVICE_TEST(an_output_is_checked_before_the_recording_ends),
		SERVICE_TEST(extraction_runs_beside_the_loop),
		SERVICE_TEST(conditions_are_only_watched_while_it_records),
		SERVICE_TEST(a_stream_is_written_while_it_records),
		SERVICE_TEST(who_leaves_a_stream_ends_it),
		SERVICE_TEST(a_recording_begins_once_its_export_waits),
		SERVICE_TEST(a_recording_begins_though_its_export_hangs),
		SERVICE_TEST(who_leaves_before_the_export_waits_has_no_recording),
		SERVICE_TEST(an_export_that_fails_at_the_start_ends_the_recording),
		SERVICE_TEST(a_stream_that_fails_leaves_its_spool),
		SERVICE_TEST(who_leaves_with_two_requests_of_a_stream_leaves_none),
		SERVICE_TEST(a_spool_that_is_kept_counts_at_once),
		SERVICE_TEST(a_paused_recording_goes_on_or_ends),
		SERVICE_TEST(a_full_stream_waits_for_its_follower),
		SERVICE_TEST(a_client_has_the_stream_in_its_own_file),
		SERVICE_TEST(a_file_for_the_stream_is_checked),
		SERVICE_TEST(a_stop_has_the_error_of_the_files),
		SERVICE_TEST(a_stop_does_not_wait_for_a_pipe),
		cmocka_unit_test(a_spool_knows_that_it_gives_nothing_back),
	};
	int r = service_test_begin(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
