/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/connection.h"

#include <sys/socket.h>

#include "base/closer.h"
#include "base/io.h"
#include "base/log.h"
#include "daemon/service/accounts.h"
#include "daemon/service/job.h"
#include "daemon/service/policy.h"
#include "daemon/service/session.h"
#include "daemon/service/turns.h"
#include "daemon/service/verbs.h"

/* A client that leaves so much unread is not asked for more. */
#define UNREAD_MAX (64U << 10)
#define HELLO_LATE_US 250000
/* A client that waits for its replies has far fewer on their way. */
#define LAST_REQUESTS_MAX 1000

static void connection_close(struct connection *c)
{
	turns_leave(&c->manager->turns, c);
	c->source = loop_source_free(c->source);
	c->flush = loop_source_free(c->flush);
	c->hello_timer = loop_source_free(c->hello_timer);
	c->fd = closer_close(c->manager->closer, c->account, CLOSER_CONNECTION, c->fd);
}

struct connection *connection_free(struct connection *c)
{
	if (!c)
		return NULL;
	connection_close(c);
	frame_io_deinit(&c->io);
	free(c);
	return NULL;
}

static struct session *connection_session(const struct connection *c)
{
	struct session *s;

	TAILQ_FOREACH(s, &c->manager->sessions, list)
	if (s->client == c)
		return s;
	return NULL;
}

void connection_over(struct connection *c)
{
	struct manager *m = c->manager;
	struct session *s;
	struct job *j;

	/* No more replies. */
	if (!c->failed)
		c->failed = -ECONNRESET;
	TAILQ_REMOVE(&m->connections, c, list);
	m->connection_count--;
	/* Sessions first: a recording with an output survives its client. */
	while ((s = connection_session(c)))
		session_client_left(s);
	while ((j = TAILQ_FIRST(&c->jobs)))
		job_client_left(j);
	connection_close(c);
	TAILQ_INSERT_TAIL(&m->over.connections, c, list);
	manager_reap_later(m);
	manager_changed(m);
}

static void connection_drop_later(struct connection *c, int code)
{
	if (!c->failed)
		c->failed = code;
	loop_source_enable(c->flush, true);
}

static void connection_drop(struct connection *c, int code)
{
	static struct log_limit limit = LOG_LIMIT_INIT;

	if (code != -ECONNRESET && code != -EPIPE && log_limit_pass(&limit))
		log_notice("dropping the client with pid %d, uid %u: %s", c->pid, c->uid,
			   code == -ENOBUFS  ? "it does not read its replies"
			   : code == -EUSERS ? "descriptors that its user sent do not close"
					     : strerror(-code));
	/* Try to send a last reply that explains; unsent data is lost. */
	frame_flush(&c->io);
	connection_over(c);
}

static int connection_watch(struct connection *c)
{
	size_t unread = frame_queued(&c->io);
	uint32_t in = unread < UNREAD_MAX ? EPOLLIN : 0;
	int r = loop_io_set_events(c->source, in | (unread ? EPOLLOUT : 0));

	if (r >= 0)
		r = loop_source_enable(c->source, !c->waits);
	return MIN(r, 0);
}

static int connection_receive(struct connection *c);

/*
 * A client that left may have asked before for the end of its recording. Its other requests are
 * dropped.
 */
static void connection_take_last(struct connection *c)
{
	c->left = true;
	for (unsigned n = 0; n < LAST_REQUESTS_MAX && !c->failed && connection_receive(c) > 0; n++)
		;
}

static int connection_send(struct connection *c)
{
	int r = frame_flush(&c->io);

	if (r == -EPIPE || r == -ECONNRESET)
		connection_take_last(c);
	return r < 0 ? r : connection_watch(c);
}

/* Sends replies and drops failed clients from the loop, never inside a verb. */
static void connection_on_flush(void *userdata)
{
	struct connection *c = userdata;
	int r;

	loop_doing("replies to a client", NULL);
	r = c->failed ?: connection_send(c);

	if (r < 0)
		connection_drop(c, r);
}

void connection_flush(struct connection *c)
{
	/* All is sent: the deferred flush has nothing left to do. */
	if (!c->failed && frame_flush(&c->io) == 0)
		loop_source_enable(c->flush, false);
}

/* Replies that are not read take memory: a user's connections share one limit. */
static bool connection_user_is_full(const struct connection *c)
{
	const struct connection *other;
	size_t unread = 0;

	if (frame_queued(&c->io) < UNREAD_MAX || policy_trusts(c->uid))
		return false;
	TAILQ_FOREACH(other, &c->manager->connections, list)
	if (other->account == c->account)
		unread += frame_queued(&other->io);
	return unread > CONTROL_QUEUE_MAX;
}

void connection_reply(struct connection *c, uint64_t request_id, Traced__Control__Reply *reply)
{
	int r;

	if (!c || c->failed || c->left)
		return;
	reply->id = request_id;
	r = frame_queue(&c->io, &reply->base, NULL, 0);
	if (r == -EMSGSIZE) {
		_cleanup_error_ struct error err = ERROR_INIT;

		error_set(&err, r, "the reply is too long");
		connection_reply_error(c, request_id, &err);
		return;
	}
	if (r < 0)
		connection_drop_later(c, r);
	else if (connection_user_is_full(c))
		connection_drop_later(c, -ENOBUFS);
	else
		loop_source_enable(c->flush, true);
}

void connection_reply_error(struct connection *c, uint64_t request_id, const struct error *err)
{
	Traced__Control__Reply reply = TRACED__CONTROL__REPLY__INIT;
	Traced__Control__Error e = TRACED__CONTROL__ERROR__INIT;

	e.code = (uint32_t)(err->code > 0 ? err->code : EIO);
	if (err->message)
		e.message = err->message;
	if (err->hint)
		e.hint = err->hint;
	e.hint_needs_output = err->hint_needs_output;
	reply.error = &e;
	connection_reply(c, request_id, &reply);
}

/* Reports the client's error, then disconnects it. */
static void connection_break_off(struct connection *c, int code, const char *text)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	error_set(&err, code, "%s", text);
	connection_reply_error(c, 0, &err);
	connection_drop_later(c, code);
}

static void connection_answer_hello(struct connection *c, const Traced__Control__Request *request)
{
	Traced__Control__HelloReply hello = TRACED__CONTROL__HELLO_REPLY__INIT;
	Traced__Control__Reply reply = TRACED__CONTROL__REPLY__INIT;

	if (request->hello->version != CONTROL_VERSION) {
		_cleanup_error_ struct error err = ERROR_INIT;

		error_set(&err, -EPROTO,
			  "traced " TRACED_VERSION " speaks version %d of the protocol",
			  CONTROL_VERSION);
		error_hint(&err, "use the tracectl that belongs to it, or restart the daemon after "
				 "an update");
		connection_reply_error(c, request->id, &err);
		connection_drop_later(c, -EPROTO);
		return;
	}
	c->greeted = true;
	c->hello_timer = loop_source_free(c->hello_timer);
	hello.version = CONTROL_VERSION;
	hello.daemon = (char *)"traced " TRACED_VERSION;
	hello.pid = getpid();
	reply.body_case = TRACED__CONTROL__REPLY__BODY_HELLO;
	reply.hello = &hello;
	connection_reply(c, request->id, &reply);
}

/* A client that left has as many served as it may have waited for: they take no turns. */
static bool connection_serves(struct connection *c, const Traced__Control__Request *request)
{
	if (!c->left)
		return true;
	return (request->verb_case == TRACED__CONTROL__REQUEST__VERB_CANCEL ||
		request->verb_case == TRACED__CONTROL__REQUEST__VERB_STOP) &&
	       c->last_served++ < CONNECTION_IN_FLIGHT_MAX;
}

static void connection_take_frame(struct connection *c, const uint8_t *payload, size_t len,
				  int *fds, size_t fd_count)
{
	Traced__Control__Request *request = traced__control__request__unpack(NULL, len, payload);

	if (!request || !request->id) {
		connection_break_off(c, -EBADMSG, "a request that can't be decoded");
	} else if (request->verb_case == TRACED__CONTROL__REQUEST__VERB_HELLO) {
		connection_answer_hello(c, request);
	} else if (!c->greeted) {
		connection_break_off(c, -EPROTO, "the first request must be Hello");
	} else if (connection_serves(c, request)) {
		verb_dispatch(c, request, fds, fd_count);
	}
	for (size_t i = 0; i < fd_count; i++)
		closer_close(c->io.closer, c->account, CLOSER_FILE, fds[i]);
	if (request)
		traced__control__request__free_unpacked(request, NULL);
}

/* Returns 1 if it handled a request, 0 if none is complete, or -errno. */
static int connection_receive(struct connection *c)
{
	int fds[CONTROL_FDS_MAX];
	const uint8_t *payload;
	size_t len, fd_count;
	int r;

	if (closer_is_blocked(c->manager->closer, c->account))
		return -EUSERS;
	r = frame_receive(&c->io, &payload, &len, fds, &fd_count);
	if (r == -EMSGSIZE) {
		connection_break_off(c, r, "a request is longer than this daemon accepts");
		return 0;
	}
	if (r > 0)
		connection_take_frame(c, payload, len, fds, fd_count);
	return r;
}

void connection_serve(struct connection *c)
{
	int r;

	loop_doing("a client's request", NULL);
	r = c->failed ? 0 : connection_receive(c);
	if (r >= 0 && c->fd >= 0)
		r = connection_watch(c);
	if (r < 0 && !c->failed)
		connection_drop(c, r);
}

static void connection_on_socket(void *userdata, int fd _unused_, uint32_t revents)
{
	struct connection *c = userdata;
	int r = 0;

	if (c->failed)
		return; /* connection_on_flush will run */
	if (revents & EPOLLOUT)
		r = connection_send(c);
	if (r < 0) {
		connection_drop(c, r);
	} else if (!(revents & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
		return;
	} else if (turns_at_once(&c->manager->turns, c->account)) {
		connection_serve(c);
	} else {
		turns_wait(&c->manager->turns, c);
		r = connection_watch(c);
		if (r < 0)
			connection_drop(c, r);
	}
}

static void connection_on_hello_timeout(void *userdata)
{
	connection_drop(userdata, -ETIMEDOUT);
}

static int connection_add_sources(struct connection *c)
{
	struct loop *loop = c->manager->loop;
	int r;

	r = loop_add_io(loop, &c->source, c->fd, EPOLLIN, connection_on_socket, c);
	if (r < 0)
		return r;
	r = loop_add_deferred(loop, &c->flush, connection_on_flush, c);
	if (r < 0)
		return r;
	r = loop_add_timer(loop, &c->hello_timer, CLOCK_MONOTONIC, HELLO_LATE_US,
			   connection_on_hello_timeout, c);
	if (r < 0)
		return r;
	return loop_timer_in(c->hello_timer, CONNECTION_HELLO_S * USEC_PER_SEC);
}

int connection_new(struct connection **ret, struct manager *m, int fd, struct error *err)
{
	_cleanup_(connection_freep) struct connection *c = calloc(1, sizeof(*c));
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int r;

	if (!c) {
		closer_close(m->closer, 0, CLOSER_CONNECTION, fd);
		return error_errno(err, -ENOMEM, "connection");
	}
	c->manager = m;
	c->fd = fd;
	frame_io_init(&c->io, fd);
	c->io.max_in = CONNECTION_REQUEST_MAX;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return error_errno(err, -errno, "credentials of a client");
	c->uid = peer.uid;
	c->account = accounts_of(m->accounts, peer.uid);
	c->pid = peer.pid;
	c->io.closer = m->closer;
	c->io.account = c->account;
	TAILQ_INIT(&c->jobs);
	r = connection_add_sources(c);
	if (r < 0)
		return error_errno(err, r, "can't watch a client");
	TAILQ_INSERT_TAIL(&m->connections, c, list);
	m->connection_count++;
	*ret = TAKE_PTR(c);
	return 0;
}
