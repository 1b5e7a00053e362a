/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/client.h"

#include <inttypes.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/io.h"
#include "base/place.h"
#include "base/vec.h"

#define ERRNO_MAX 4095 /* the kernel's own limit */
#define CONNECT_TIMEOUT_S 5
#define HELLO_TIMEOUT_MS 10000

typedef Traced__Control__Reply Reply;

struct control_client {
	int fd;
	struct frame_io io;
	uint64_t last_id;
	Reply **kept; /* replies to other requests, received while waiting; owned */
	size_t kept_count;
};

struct control_client *control_client_free(struct control_client *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < c->kept_count; i++)
		traced__control__reply__free_unpacked(c->kept[i], NULL);
	free(c->kept);
	frame_io_deinit(&c->io);
	close_fd(c->fd);
	free(c);
	return NULL;
}

int control_client_fd(const struct control_client *c)
{
	return c->fd;
}

static int client_gone(struct error *err, int code)
{
	if (code == -ECONNRESET || code == -EPIPE) {
		error_set(err, -ECONNRESET, "traced closed the connection");
		return error_hint(err, "its log says why%s",
				  place_has_unit() ? ": journalctl -u " TRACED_PROGRAM : "");
	}
	return error_errno(err, code, "the connection to traced failed");
}

/*
 * Waits for events until CLOCK_MONOTONIC deadline_ns (UINT64_MAX: forever). Returns 1, 0 or -errno.
 */
static int client_wait(int fd, short events, uint64_t deadline_ns)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = events };
		uint64_t now = now_ns(CLOCK_MONOTONIC);
		uint64_t left = deadline_ns - now;
		struct timespec ts = { .tv_sec = (time_t)(left / NSEC_PER_SEC),
				       .tv_nsec = (long)(left % NSEC_PER_SEC) };
		int r = 0;

		/* The caller has tried already. */
		if (deadline_ns > now)
			r = ppoll(&p, 1, deadline_ns == UINT64_MAX ? NULL : &ts, NULL);
		if (r >= 0)
			return r;
		if (errno != EINTR)
			return -errno;
	}
}

static uint64_t client_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX
			      : now_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * NSEC_PER_MSEC;
}

int64_t control_client_send(struct control_client *c, Traced__Control__Request *request,
			    const int *fds, size_t fd_count, struct error *err)
{
	int r;

	request->id = ++c->last_id;
	r = frame_queue(&c->io, &request->base, fds, fd_count);
	if (r < 0)
		return error_errno(err, r, "can't send the control request");
	while ((r = frame_flush(&c->io)) > 0) {
		r = client_wait(c->fd, POLLOUT, UINT64_MAX);
		if (r < 0)
			break;
	}
	if (r == -EPIPE || r == -ECONNRESET) {
		Reply *farewell = NULL;

		/* The daemon may have sent a reason before it closed the connection. */
		if (control_client_receive(c, 0, &farewell, err) == 1)
			traced__control__reply__free_unpacked(farewell, NULL);
		else if (err && err->code)
			return -err->code;
	}
	return r < 0 ? client_gone(err, r) : (int64_t)request->id;
}

int control_error(const Traced__Control__Error *e, struct error *err)
{
	int code = e->code && e->code <= ERRNO_MAX ? -(int)e->code : -EIO;

	error_set(err, code, "%s", e->message && *e->message ? e->message : strerror(-code));
	if (e->hint && *e->hint)
		error_hint(err, "%s", e->hint);
	if (err)
		err->hint_needs_output = e->hint_needs_output;
	return code;
}

static int client_next_reply(struct control_client *c, uint64_t deadline_ns, Reply **ret,
			     struct error *err)
{
	int fds[CONTROL_FDS_MAX];
	const uint8_t *payload;
	size_t len, fd_count;
	Reply *reply;
	int r;

	while ((r = frame_receive(&c->io, &payload, &len, fds, &fd_count)) == 0) {
		r = client_wait(c->fd, POLLIN, deadline_ns);
		if (r == 0)
			return 0;
		if (r < 0)
			break;
	}
	if (r < 0)
		return client_gone(err, r);
	for (size_t i = 0; i < fd_count; i++)
		close_fd(fds[i]);
	reply = traced__control__reply__unpack(NULL, len, payload);
	if (!reply)
		return error_set(err, -EBADMSG, "traced sent a reply that can't be decoded");
	if (reply->id == 0 && reply->error) {
		/* The error is about the connection, not a request. */
		r = control_error(reply->error, err);
		traced__control__reply__free_unpacked(reply, NULL);
		return r;
	}
	*ret = reply;
	return 1;
}

int control_client_receive(struct control_client *c, int timeout_ms, Reply **ret, struct error *err)
{
	if (c->kept_count) {
		*ret = c->kept[0];
		vec_remove(c->kept, c->kept_count, 0, 1);
		return 1;
	}
	return client_next_reply(c, client_deadline(timeout_ms), ret, err);
}

static int client_keep(struct control_client *c, Reply *reply)
{
	if (vec_reserve_exact(c->kept, c->kept_count, 1) < 0) {
		traced__control__reply__free_unpacked(reply, NULL);
		return -ENOMEM;
	}
	c->kept[c->kept_count++] = reply;
	return 0;
}

static int client_call(struct control_client *c, Traced__Control__Request *request, const int *fds,
		       size_t fd_count, uint64_t deadline_ns, Reply **ret, struct error *err)
{
	int64_t id = control_client_send(c, request, fds, fd_count, err);
	Reply *reply = NULL;
	int r;

	if (id < 0)
		return (int)MAX(id, (int64_t)-ERRNO_MAX);
	for (;;) {
		r = client_next_reply(c, deadline_ns, &reply, err);
		if (r < 0)
			return r;
		if (r == 0) {
			error_set(err, -ETIMEDOUT, "traced does not answer");
			return -ETIMEDOUT;
		}
		if (reply->id == (uint64_t)id)
			break;
		r = client_keep(c, reply);
		if (r < 0) {
			error_errno(err, r, "can't receive the control reply");
			return r;
		}
	}
	if (reply->error) {
		r = control_error(reply->error, err);
		traced__control__reply__free_unpacked(reply, NULL);
		return r;
	}
	*ret = reply;
	return 0;
}

int control_client_call(struct control_client *c, Traced__Control__Request *request, const int *fds,
			size_t fd_count, Reply **ret, struct error *err)
{
	return client_call(c, request, fds, fd_count, UINT64_MAX, ret, err);
}

static int client_shake_hands(struct control_client *c, struct error *err)
{
	Traced__Control__Hello hello = TRACED__CONTROL__HELLO__INIT;
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Reply *reply = NULL;
	int r;

	hello.version = CONTROL_VERSION;
	hello.client = (char *)"tracectl " TRACED_VERSION;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_HELLO;
	request.hello = &hello;
	r = client_call(c, &request, NULL, 0, client_deadline(HELLO_TIMEOUT_MS), &reply, err);
	if (r < 0)
		return r;
	if (reply->body_case != TRACED__CONTROL__REPLY__BODY_HELLO) {
		error_set(err, -EPROTO, "the control socket's peer is not traced");
		r = error_hint(err, "find the program that listens there: ss -xlp");
	} else if (reply->hello->version != CONTROL_VERSION) {
		error_set(err, -EPROTO, "%s speaks version %" PRIu32 " of the protocol, not %d",
			  reply->hello->daemon, reply->hello->version, CONTROL_VERSION);
		r = error_hint(err, "restart the daemon after an update%s",
			       place_has_unit() ? ": systemctl restart " TRACED_PROGRAM : "");
	}
	traced__control__reply__free_unpacked(reply, NULL);
	return r;
}

int control_client_adopt(struct control_client **ret, int fd, struct error *err)
{
	_cleanup_(control_client_freep) struct control_client *c = calloc(1, sizeof(*c));
	int r;

	if (!c) {
		close_fd(fd);
		return error_errno(err, -ENOMEM, "cannot connect to traced");
	}
	c->fd = fd;
	frame_io_init(&c->io, fd);
	r = client_shake_hands(c, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

static int connect_no_permission(struct error *err, const char *path)
{
	struct stat st;

	error_set(err, -EACCES, "no permission to use %s", path);
	if (stat(path, &st) == 0 && !(st.st_mode & S_IWGRP))
		return error_hint(err, "run as root, or create the group " CONTROL_GROUP
				       " and restart traced: groupadd -r " CONTROL_GROUP);
	return error_hint(err, "run as root, or have root add you to the socket's group: "
			       "usermod -aG " CONTROL_GROUP " USER");
}

static int connect_error(struct error *err, int code, const char *path)
{
	switch (code) {
	case -ENOENT:
	case -ECONNREFUSED:
		error_set(err, code, "no traced listens on %s", path);
		return error_hint(err, "%s, or run tracectl as root, which needs no daemon",
				  place_start_daemon());
	case -EACCES:
	case -EPERM:
		return connect_no_permission(err, path);
	case -EAGAIN:
		error_set(err, -ETIMEDOUT, "traced does not accept the connection on %s", path);
		return error_hint(err, "check the state of the daemon%s",
				  place_has_unit() ? ": systemctl status " TRACED_PROGRAM : "");
	default:
		return error_errno(err, code, "cannot connect to %s", path);
	}
}

int control_client_connect(struct control_client **ret, const char *socket_path, struct error *err)
{
	struct timeval patience = { .tv_sec = CONNECT_TIMEOUT_S };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -EBADF;

	if (strlen(socket_path) >= sizeof(sa.sun_path))
		return error_set(err, -ENAMETOOLONG, "the socket's path is too long: %s",
				 socket_path);
	memcpy(sa.sun_path, socket_path, strlen(socket_path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_errno(err, -errno, "cannot make a socket");
	/* Limits the time of connect() to a daemon with a full backlog. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return connect_error(err, -errno, socket_path);
	return control_client_adopt(ret, TAKE_FD(fd), err);
}
