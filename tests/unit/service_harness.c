/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service_harness.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "daemon/service/accounts.h"
#include "daemon/service/connection.h"
#include "daemon/service/exporter.h"
#include "daemon/service/session.h"

/* A message and what follows from it take no more steps of the loop, however late these come. */
#define TURN_STEPS 20

uint64_t next_id;

static void manager_make(struct daemon *d)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct manager_options options = {
		.config_file = NULL,
		.spool_dir = d->spool,
		.state_dir = d->state,
		.log_level = LOG_EMERG,
	};

	assert_int_equal(manager_new(&d->manager, d->loop, &options, &err), 0);
	d->manager->config.min_free = 0;
	d->manager->config.spare = SPARE_NO;
	d->manager->accounts->subuid = d->subuid;
}

int daemon_setup(void **state)
{
	struct daemon *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	close_fd(fakes.data_fd);
	fakes = (struct fakes){ .data_fd = -1 };
	strcpy(d->dir, "/tmp/traced-test-XXXXXX");
	assert_non_null(mkdtemp(d->dir));
	snprintf(d->spool, sizeof(d->spool), "%s/spool", d->dir);
	snprintf(d->state, sizeof(d->state), "%s/state", d->dir);
	snprintf(d->subuid, sizeof(d->subuid), "%s/subuid", d->dir);
	assert_int_equal(loop_new(&d->loop), 0);
	manager_make(d);
	*state = d;
	return 0;
}

unsigned spool_files(const struct daemon *d, bool remove)
{
	DIR *dir = opendir(d->spool);
	struct dirent *e;
	unsigned n = 0;

	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		n++;
		if (remove)
			unlinkat(dirfd(dir), e->d_name, 0);
	}
	if (dir)
		closedir(dir);
	return n;
}

int daemon_teardown(void **state)
{
	struct daemon *d = *state;

	fakes.gate_closed = false;
	manager_free(d->manager);
	loop_free(d->loop);
	assert_int_equal(captures(), 0);
	assert_int_equal(spares(), 0);
	spool_files(d, true);
	rmdir(d->spool);
	rmdir(d->state);
	unlink(d->subuid);
	assert_int_equal(rmdir(d->dir), 0);
	free(d);
	return 0;
}

void client_open_as(struct daemon *d, struct client *c, uid_t uid)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	const uid_t own = geteuid();
	int fds[2];

	/* The daemon sees the user that makes the sockets. */
	assert_int_equal(seteuid(uid), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(seteuid(own), 0);
	c->fd = fds[0];
	frame_io_init(&c->io, c->fd);
	assert_int_equal(manager_adopt(d->manager, fds[1], &err), 0);
}

void client_open(struct daemon *d, struct client *c)
{
	client_open_as(d, c, geteuid());
}

void client_close(struct client *c)
{
	frame_io_deinit(&c->io);
	c->fd = close_fd(c->fd);
}

void turn(struct daemon *d, uint64_t ms)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + ms * NSEC_PER_MSEC;

	for (int steps = 0; !loop_has_ended(d->loop); steps++) {
		uint64_t now = now_ns(CLOCK_MONOTONIC), left = end > now ? end - now : 0;

		if (!left && (!ms || steps >= TURN_STEPS))
			break;
		assert_int_equal(loop_step(d->loop, MIN((left + 999) / 1000, UINT64_C(5000))), 0);
	}
}

void tell(struct client *c, Request *request, int fd)
{
	assert_int_equal(frame_queue(&c->io, &request->base, &fd, fd >= 0), 0);
	assert_int_equal(frame_flush(&c->io), 0);
}

Reply *hear(struct daemon *d, struct client *c)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + 10 * NSEC_PER_SEC;

	for (;;) {
		int fds[CONTROL_FDS_MAX], r;
		const uint8_t *payload;
		size_t len, n;

		r = frame_receive(&c->io, &payload, &len, fds, &n);
		if (r == -ECONNRESET)
			return NULL;
		assert_in_range(r, 0, 1);
		if (r)
			return traced__control__reply__unpack(NULL, len, payload);
		assert_true(now_ns(CLOCK_MONOTONIC) < end);
		turn(d, 2);
	}
}

Reply *ask(struct daemon *d, struct client *c, Request *request, int fd)
{
	Reply *reply;

	tell(c, request, fd);
	reply = hear(d, c);
	assert_non_null(reply);
	assert_int_equal(reply->id, request->id);
	return reply;
}

void done_with(Reply *reply)
{
	traced__control__reply__free_unpacked(reply, NULL);
}

void greet(struct daemon *d, struct client *c)
{
	Traced__Control__Hello hello = TRACED__CONTROL__HELLO__INIT;
	Reply *reply;

	client_open(d, c);
	REQUEST(request, HELLO, hello, hello);
	hello.version = CONTROL_VERSION;
	reply = ask(d, c, &request, -1);
	assert_int_equal(reply->body_case, TRACED__CONTROL__REPLY__BODY_HELLO);
	assert_int_equal(reply->hello->pid, getpid());
	done_with(reply);
}

void greet_as(struct daemon *d, struct client *c, uid_t uid)
{
	struct connection *own;

	greet(d, c);
	own = TAILQ_LAST(&d->manager->connections, connection_list);
	own->uid = uid;
	own->account = accounts_of(d->manager->accounts, uid);
}

Reply *start(struct daemon *d, struct client *c, const char *name, bool detached, bool ring,
	     uint64_t duration_ms)
{
	Traced__Control__Start start = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, start);

	start.name = (char *)name;
	start.detached = detached;
	start.ring = ring;
	start.duration_ns = duration_ms * NSEC_PER_MSEC;
	return ask(d, c, &request, -1);
}

uint64_t tell_start(struct daemon *d, struct client *c, const char *name, bool detached, bool ring)
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

Reply *start_filtered(struct daemon *d, struct client *c, const char *glob, const char *filter)
{
	Traced__Control__Start start = TRACED__CONTROL__START__INIT;
	Traced__Control__EventSpec spec = TRACED__CONTROL__EVENT_SPEC__INIT, *specs = &spec;
	REQUEST(request, START, start, start);

	spec.glob = (char *)glob;
	spec.filter = (char *)filter;
	start.events = &specs;
	start.n_events = 1;
	return ask(d, c, &request, -1);
}

void start_ok(struct daemon *d, struct client *c, const char *name, bool detached)
{
	Reply *reply = start(d, c, name, detached, false, 0);

	assert_null(reply->error);
	assert_string_equal(reply->session->name, name);
	assert_int_equal(reply->session->state, TRACED__CONTROL__SESSION__STATE__RECORDING);
	done_with(reply);
}

void assert_error(Reply *reply, int code, const char *part)
{
	assert_non_null(reply->error);
	assert_int_equal(reply->error->code, code);
	if (!strstr(reply->error->message, part) && !strstr(reply->error->hint, part))
		fail_msg("\"%s\" is not in \"%s\" nor in \"%s\"", part, reply->error->message,
			 reply->error->hint);
	done_with(reply);
}

Request *stop_request(const char *name, const char *format)
{
	static Traced__Control__Stop stop;
	static Traced__Control__Output output;
	static Request request;

	traced__control__stop__init(&stop);
	traced__control__output__init(&output);
	traced__control__request__init(&request);
	stop.session = (char *)name;
	output.format = (char *)format;
	stop.output = format ? &output : NULL;
	request.id = ++next_id;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_STOP;
	request.stop = &stop;
	return &request;
}

Request *attach_request(const char *name, const char *format)
{
	static Traced__Control__Attach attach;
	static Traced__Control__Output output;
	static Request request;

	traced__control__attach__init(&attach);
	traced__control__output__init(&output);
	traced__control__request__init(&request);
	attach.session = (char *)name;
	output.format = (char *)format;
	attach.output = format ? &output : NULL;
	request.id = ++next_id;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_ATTACH;
	request.attach = &attach;
	return &request;
}

Request *snapshot_request(const char *name, const char *format)
{
	static Traced__Control__Snapshot snapshot;
	static Traced__Control__Output output;
	static Request request;

	traced__control__snapshot__init(&snapshot);
	traced__control__output__init(&output);
	traced__control__request__init(&request);
	snapshot.session = (char *)name;
	output.format = (char *)format;
	snapshot.output = format ? &output : NULL;
	request.id = ++next_id;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_SNAPSHOT;
	request.snapshot = &snapshot;
	return &request;
}

Request *cancel_request(const char *name)
{
	static Traced__Control__Cancel cancel;
	static Request request;

	traced__control__cancel__init(&cancel);
	traced__control__request__init(&request);
	cancel.session = (char *)name;
	request.id = ++next_id;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_CANCEL;
	request.cancel = &cancel;
	return &request;
}

Request *status_request(void)
{
	static Traced__Control__StatusQuery query;
	static Request request;

	traced__control__status_query__init(&query);
	traced__control__request__init(&request);
	request.id = ++next_id;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_STATUS;
	request.status = &query;
	return &request;
}

void assert_output(int fd, const char *expected)
{
	char text[256] = { 0 };

	assert_true(pread_full(fd, text, sizeof(text) - 1, 0) >= 0);
	assert_string_equal(text, expected);
}

void feed(void)
{
	uint64_t one = 1;

	assert_int_equal(write(fakes.data_fd, &one, sizeof(one)), sizeof(one));
}

void await_captures(struct daemon *d, int count)
{
	const struct timespec pause = { .tv_nsec = 5 * NSEC_PER_MSEC };

	for (int i = 0; i < 1000 && captures() != count; i++) {
		/* A loop that has ended takes no time, and the worker does. */
		if (loop_has_ended(d->loop))
			nanosleep(&pause, NULL);
		turn(d, 5);
	}
	assert_int_equal(captures(), count);
}

int service_test_begin(int argc, char **argv)
{
	sigset_t set;

	if (argc > 1 && strcmp(argv[1], EXPORTER_OPTION) == 0)
		return exporter_main();
	if (argc > 1 && strcmp(argv[1], EXTRACTOR_OPTION) == 0)
		return extractor_main(argc - 2, argv + 2);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return -1;
}
