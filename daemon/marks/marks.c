/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/marks/marks.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/io.h"
#include "daemon/marks/internal.h"
#include "proto/capture.pb-c.h"
#include "traced/mark_record.h"

#define BACKLOG 1024
#define EVENTS_PER_TURN 64
#define ROUNDS_PER_TURN 3 /* a program connects, sends a ring, and fills it */
#define TICK_NS (100 * NSEC_PER_MSEC)
/* Memory kept for the next drain. */
#define STAGING_KEPT (1U << 20)

static int member_announce(const struct member *r, struct marks_sink *sink)
{
	Traced__Capture__Producer msg = TRACED__CAPTURE__PRODUCER__INIT;
	const struct producer *p = r->producer;
	_cleanup_free_ uint8_t *packed = NULL;
	struct iovec iov;

	msg.ring = r->id;
	msg.version = r->version;
	msg.pid = p->pid;
	msg.tid = r->tid;
	msg.uid = p->uid;
	msg.comm.data = (uint8_t *)(uintptr_t)r->comm;
	msg.comm.len = strlen(r->comm);
	if (p->exe) {
		msg.exe.data = (uint8_t *)p->exe;
		msg.exe.len = strlen(p->exe);
	}
	msg.clock = r->clock;
	msg.generation = sink->generation;
	msg.ring_bytes = r->ring.size;
	msg.boot_ns = r->boot_ns;
	iov.iov_len = traced__capture__producer__get_packed_size(&msg);
	packed = malloc(iov.iov_len);
	if (!packed)
		return -ENOMEM;
	traced__capture__producer__pack(&msg, packed);
	iov.iov_base = packed;
	return sink->write(sink->userdata, CHUNK_PRODUCER, &iov, 1);
}

/*
 * A flood of marks must not fill the disk, which would end the recording. A user's share shrinks
 * with what is left. Root has no limits.
 */
static bool member_takes_share(struct marks_sink *sink, const struct member *r, uint64_t bytes)
{
	struct marks *m = r->producer->marks;
	struct user *u = r->producer->user;

	if (u->account == 0 || !sink->share)
		return true;
	/* To ask takes system calls. */
	if (sink->share_drain != m->drains)
		sink->share_bytes = sink->share(sink->userdata);
	sink->share_drain = m->drains;
	if (u->taken[sink->slot] + bytes > sink->share_bytes)
		return false;
	u->taken[sink->slot] += bytes;
	return true;
}

static void member_write(struct marks_sink *sink, struct member *r, const struct buf *records)
{
	struct marks_header h = { .dropped = htole64(r->ring.dropped), .ring = htole32(r->id) };
	uint64_t bit = UINT64_C(1) << sink->slot;
	struct iovec iov[] = {
		{ .iov_base = &h, .iov_len = sizeof(h) },
		{ .iov_base = records->data, .iov_len = records->len },
	};
	int e = 0;

	if (sink->failed)
		return;
	if (r->stale & bit) {
		r->stale &= ~bit;
		sink->missing++;
		return;
	}
	if (!member_takes_share(sink, r, records->len)) {
		sink->missing += !(r->above & bit);
		r->above |= bit;
		return;
	}
	if (!(r->announced & bit))
		e = member_announce(r, sink);
	if (e >= 0) {
		r->announced |= bit;
		e = sink->write(sink->userdata, CHUNK_MARKS, iov, ARRAY_SIZE(iov));
	}
	if (e < 0)
		sink->failed = e;
}

int64_t member_drain(struct member *r)
{
	struct marks *m = r->producer->marks;
	struct marks_sink *sink;
	uint64_t dropped = r->ring.dropped;
	int64_t n;

	buf_clear(&m->staging);
	/* Discards marks that a thread wrote before it saw the end of the last recording. */
	if (LIST_EMPTY(&m->sinks))
		return marks_ring_discard(&r->ring);
	n = marks_ring_take(&r->ring, &m->staging);
	if (n < 0)
		return n;
	m->count.bytes += (uint64_t)n;
	user_note_taken(m, r->producer->user, (uint64_t)n);
	m->count.dropped += r->ring.dropped - dropped;
	if (!n && r->ring.dropped == r->reported_dropped)
		return 0;
	r->reported_dropped = r->ring.dropped;
	LIST_FOREACH(sink, &m->sinks, list)
	member_write(sink, r, &m->staging);
	return n;
}

static struct member *member_after(struct marks *m, struct member *r)
{
	struct producer *p = r ? r->producer : NULL;

	r = r ? TAILQ_NEXT(r, list) : NULL;
	if (!p)
		p = TAILQ_FIRST(&m->producers);
	else if (!r)
		p = TAILQ_NEXT(p, list);
	for (; !r && p; p = TAILQ_NEXT(p, list))
		r = TAILQ_FIRST(&p->rings);
	return r;
}

/* To discard marks costs nothing. */
static bool member_must_wait(struct marks *m, struct member *r)
{
	return !LIST_EMPTY(&m->sinks) && !user_may_take(m, r->producer->user);
}

/*
 * Continues where the last drain ended. budget UINT64_MAX: visits all rings. Returns 1 if the
 * budget was used up.
 */
static int marks_drain_rings(struct marks *m, uint64_t budget)
{
	struct member *first = budget == UINT64_MAX ? NULL : m->next;
	struct member *r = first ?: member_after(m, NULL), *next;
	uint64_t taken = 0;

	m->next = NULL;
	for (; r; r = next) {
		bool closed = marks_ring_closed(&r->ring);
		int64_t n;

		next = member_after(m, r);
		r->skipped = member_must_wait(m, r);
		if (r->skipped)
			continue;
		n = member_drain(r);
		if (n < 0)
			m->count.refused++;
		if (n < 0 || closed || r->producer->gone)
			member_free(r);
		else
			taken += (uint64_t)n;
		if (taken >= budget && next) {
			m->next = next;
			return 1;
		}
	}
	if (m->staging.cap > STAGING_KEPT)
		buf_deinit(&m->staging);
	return 0;
}

void marks_want(struct marks *m, uint64_t at_ns)
{
	m->deadline = MIN(m->deadline, at_ns);
}

/* Without programs there is nothing to drain: no wake-up. */
static void marks_want_drain(struct marks *m, uint64_t delay_ns)
{
	if (!LIST_EMPTY(&m->sinks) && !TAILQ_EMPTY(&m->producers))
		marks_want(m, now_ns(CLOCK_MONOTONIC) + delay_ns);
}

int marks_drain(struct marks *m)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	int more;

	m->deadline = UINT64_MAX;
	if (m->accept_at && now >= m->accept_at) {
		struct epoll_event e = { .events = EPOLLIN, .data.ptr = &m->listening };

		m->accept_at = 0;
		epoll_ctl(m->epfd, EPOLL_CTL_MOD, m->listen_fd, &e);
	} else if (m->accept_at) {
		marks_want(m, m->accept_at);
	}
	m->taken_on_request = 0;
	m->drains++;
	users_tidy(m);
	more = marks_drain_rings(m, DRAIN_BYTES);
	producers_tidy(m, true);
	marks_want_drain(m, more ? SHORT_TICK_NS : TICK_NS);
	return more;
}

uint64_t marks_deadline(const struct marks *m)
{
	return m->deadline;
}

int marks_fd(const struct marks *m)
{
	return m->epfd;
}

void marks_dispatch(struct marks *m)
{
	struct epoll_event events[EVENTS_PER_TURN];

	for (int round = 0; round < ROUNDS_PER_TURN; round++) {
		int n = epoll_wait(m->epfd, events, EVENTS_PER_TURN, 0);

		if (n <= 0)
			break;
		for (int i = 0; i < n; i++) {
			const struct source *source = events[i].data.ptr;

			if (source->producer)
				producer_event(source->producer, source);
			else
				producers_accept(m);
		}
		producers_tidy(m, false);
	}
	marks_want_drain(m, TICK_NS);
}

int marks_begin(struct marks *m, struct marks_sink *sink)
{
	uint64_t bit;
	struct producer *p;
	struct member *r;
	struct user *u;

	if (m->slots == UINT64_MAX)
		return -EUSERS;
	/* Marks made so far belong to the other recordings only. */
	marks_drain_rings(m, UINT64_MAX);
	sink->slot = (unsigned)__builtin_ctzll(~m->slots);
	sink->failed = 0;
	sink->missing = 0;
	m->drains++;
	bit = UINT64_C(1) << sink->slot;
	m->slots |= bit;
	LIST_FOREACH(u, &m->users, list)
	u->taken[sink->slot] = 0;
	TAILQ_FOREACH(p, &m->producers, list)
	TAILQ_FOREACH(r, &p->rings, list)
	{
		r->announced &= ~bit;
		r->stale &= ~bit;
		r->above &= ~bit;
		if (r->skipped && marks_ring_waiting(&r->ring) != 0)
			r->stale |= bit;
	}
	LIST_INSERT_HEAD(&m->sinks, sink, list);
	sink->generation = marks_page_begin(&m->page);
	marks_want_drain(m, TICK_NS);
	return 0;
}

/* Accepts new connections and reads the messages sent meanwhile. */
static void marks_read_messages(struct marks *m)
{
	struct producer *p;

	for (int n = 1, all = 0; n > 0 && all < BACKLOG; all += n)
		n = producers_accept(m);
	TAILQ_FOREACH(p, &m->producers, list)
	producer_read_all(p);
}

void marks_end(struct marks *m, struct marks_sink *sink)
{
	struct producer *p;
	struct member *r;

	if (!sink->generation)
		return;
	if (LIST_FIRST(&m->sinks) == sink && !LIST_NEXT(sink, list))
		marks_page_end(&m->page);
	marks_read_messages(m);
	marks_drain_rings(m, UINT64_MAX);
	TAILQ_FOREACH(p, &m->producers, list)
	TAILQ_FOREACH(r, &p->rings, list)
	sink->missing += r->skipped && marks_ring_waiting(&r->ring) != 0;
	LIST_REMOVE(sink, list);
	m->slots &= ~(UINT64_C(1) << sink->slot);
	sink->generation = 0;
	producers_tidy(m, false);
}

void marks_set_limits(struct marks *m, const struct marks_limits *limits)
{
	m->limits = *limits;
}

void marks_get_count(const struct marks *m, struct marks_count *ret)
{
	*ret = m->count;
}

static int marks_make_folder(struct marks *m, const char *folder, struct error *err)
{
	if (mkdir(folder, 0755) < 0)
		return errno == EEXIST
			       ? 0
			       : error_errno(err, -errno, "cannot create the folder %s", folder);
	/* chmod: independent of the umask. */
	if (chmod(folder, 0755) < 0)
		return error_errno(err, -errno, "cannot set the mode of %s", folder);
	if (m->transient)
		m->folder = strdup(folder);
	return 0;
}

/* Removes a dead daemon's socket. */
static int marks_clear_path(int fd, const struct sockaddr_un *sa, struct error *err)
{
	struct stat st;

	if (lstat(sa->sun_path, &st) < 0)
		return errno == ENOENT
			       ? 0
			       : error_errno(err, -errno, "cannot inspect %s", sa->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return error_set(err, -EEXIST, "%s exists and is not a socket", sa->sun_path);
	if (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 || errno == EAGAIN)
		return error_set(err, -EADDRINUSE, "another traced listens on %s", sa->sun_path);
	if (unlink(sa->sun_path) < 0 && errno != ENOENT)
		return error_errno(err, -errno, "cannot remove the old socket %s", sa->sun_path);
	return 0;
}

static int marks_make_socket(struct marks *m, const char *folder, struct error *err)
{
	const int type = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -EBADF, probe = socket(AF_UNIX, type, 0);
	int r;

	if ((size_t)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/" MARKS_SOCKET, folder) >=
	    sizeof(sa.sun_path))
		return error_set(err, -ENAMETOOLONG, "the socket's path is too long: %s", folder);
	fd = socket(AF_UNIX, type, 0);
	if (fd < 0 || probe < 0)
		return error_errno(err, -errno, "cannot create a socket for marks");
	r = marks_clear_path(probe, &sa, err);
	if (r < 0)
		return r;
	if (bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return error_errno(err, -errno, "cannot bind the socket %s", sa.sun_path);
	m->socket_path = strdup(sa.sun_path);
	if (!m->socket_path || chmod(sa.sun_path, 0666) < 0 || listen(fd, BACKLOG) < 0) {
		r = error_errno(err, -errno, "cannot listen on %s", sa.sun_path);
		unlink(sa.sun_path);
		return r;
	}
	m->listen_fd = TAKE_FD(fd);
	return 0;
}

int marks_new(struct marks **ret, const char *folder, bool transient,
	      const struct marks_limits *limits, struct closer *closer, struct error *err)
{
	_cleanup_(marks_freep) struct marks *m = calloc(1, sizeof(*m));
	struct epoll_event e = { .events = EPOLLIN };
	_cleanup_free_ char *path = NULL;
	int r;

	if (!m || asprintf(&path, "%s/" MARKS_PAGE, folder) < 0) {
		path = NULL;
		return error_set(err, -ENOMEM, "out of memory");
	}
	TAILQ_INIT(&m->producers);
	m->listen_fd = -EBADF;
	m->transient = transient;
	m->limits = *limits;
	m->closer = closer;
	m->deadline = UINT64_MAX;
	m->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (m->epfd < 0)
		return error_errno(err, -errno, "cannot create an epoll descriptor");
	r = marks_make_folder(m, folder, err);
	/* The socket first: its owner also owns the page. */
	if (r == 0)
		r = marks_make_socket(m, folder, err);
	if (r == 0)
		r = marks_page_open(&m->page, path, transient, err);
	if (r < 0)
		return r;
	e.data.ptr = &m->listening;
	if (epoll_ctl(m->epfd, EPOLL_CTL_ADD, m->listen_fd, &e) < 0)
		return error_errno(err, -errno, "cannot watch the socket %s", m->socket_path);
	*ret = TAKE_PTR(m);
	return 0;
}

struct marks *marks_free(struct marks *m)
{
	if (!m)
		return NULL;
	marks_page_close(&m->page);
	while (!TAILQ_EMPTY(&m->producers))
		producer_free(TAILQ_FIRST(&m->producers));
	while (!LIST_EMPTY(&m->users)) {
		struct user *u = LIST_FIRST(&m->users);

		LIST_REMOVE(u, list);
		free(u);
	}
	/* Programs that are not accepted yet may have sent descriptors. */
	closer_close(m->closer, UID_NOBODY, CLOSER_CONNECTION, m->listen_fd);
	close_fd(m->epfd);
	if (m->socket_path)
		unlink(m->socket_path);
	if (m->folder)
		rmdir(m->folder);
	free(m->socket_path);
	free(m->folder);
	buf_deinit(&m->staging);
	free(m);
	return NULL;
}
