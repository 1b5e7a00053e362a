/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program that makes marks: its socket, its process, and its data in procfs. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "daemon/marks/internal.h"
#include "traced/mark_record.h"

#define ACCEPTS_PER_TURN 32
#define MESSAGES_PER_TURN 16
#define MESSAGES_PER_DRAIN 256 /* of one program; more wait for the next drain */
#define MESSAGES_AT_END 4096   /* of one program when a recording ends: more than a socket queues */
#define NO_RING_NS (10 * NSEC_PER_SEC) /* time limit for a connection that sends no ring */
#define RINGS_PER_WORK 64	       /* looks at as many rings cost as much as a message */
/* Rings of all users but root, as a multiple of one user's limit: a user can have many uids. */
#define USERS_TOGETHER 4U
#define ROOT_PRODUCERS 64U /* that root's programs may have above the limit */
#define TASKS_MAX 256	   /* tasks searched for one thread */

struct member *member_free(struct member *r)
{
	struct marks *m = r->producer->marks;

	if (m->next == r)
		m->next = NULL;
	TAILQ_REMOVE(&r->producer->rings, r, list);
	m->count.rings--;
	r->producer->user->rings--;
	r->producer->user->bytes -= r->ring.size;
	m->bytes -= r->ring.size;
	closer_close(m->closer, r->producer->user->account, CLOSER_FILE,
		     marks_ring_close(&r->ring));
	free(r);
	return NULL;
}

/* Takes a descriptor that the program sent. fd below 0: does nothing. */
static void producer_close(const struct producer *p, int fd)
{
	closer_close(p->marks->closer, p->user->account, CLOSER_FILE, fd);
}

/* The descriptor stays open for a while, so it must leave epoll first. */
static void producer_close_socket(struct producer *p)
{
	if (p->fd >= 0)
		epoll_ctl(p->marks->epfd, EPOLL_CTL_DEL, p->fd, NULL);
	p->fd = closer_close(p->marks->closer, p->user->account, CLOSER_CONNECTION, p->fd);
}

struct producer *producer_free(struct producer *p)
{
	while (!TAILQ_EMPTY(&p->rings))
		member_free(TAILQ_FIRST(&p->rings));
	TAILQ_REMOVE(&p->marks->producers, p, list);
	p->marks->count.producers--;
	p->user->refs--;
	producer_close_socket(p);
	close_fd(p->pidfd);
	free(p->exe);
	free(p);
	return NULL;
}

/* Returns the tid of the thread that has tid `inner` in its own pid namespace; 0: none. */
static pid_t producer_find_tid(const struct producer *p, int32_t inner)
{
	pid_t pid = p->pid;
	char path[64], status[4096], wanted[16];
	DIR *tasks;
	struct dirent *d;
	pid_t found = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	snprintf(wanted, sizeof(wanted), "\t%d\n", inner);
	tasks = opendir(path);
	if (!tasks)
		return 0;
	for (int i = 0; i < TASKS_MAX && !found && (d = readdir(tasks)); i++, p->user->work++) {
		_cleanup_close_ int fd = -EBADF;
		const char *line;
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/task/%.10s/status", pid, d->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? -1 : read_full(fd, status, sizeof(status) - 1);
		if (n <= 0)
			continue;
		status[n] = '\0';
		/* "NSpid:\touter\t...\tinner\n" */
		line = strstr(status, "\nNSpid:");
		line = line ? strchr(line + 1, '\n') : NULL;
		if (line && line - status > (ssize_t)strlen(wanted) &&
		    strncmp(line + 1 - strlen(wanted), wanted, strlen(wanted)) == 0)
			found = (pid_t)strtol(d->d_name, NULL, 10);
	}
	closedir(tasks);
	return found;
}

/*
 * Checks a thread's claimed tid: accepts threads of its own process, and tids that do not exist
 * any more, since the thread may end before its message is read.
 */
static pid_t producer_check_tid(const struct producer *p, const struct marks_message *msg)
{
	char path[64];

	if (msg->tid <= 0)
		return 0;
	if (msg->pid != p->pid)
		return user_is_exhausted(p->user) ? 0 : producer_find_tid(p, msg->tid);
	snprintf(path, sizeof(path), "/proc/%d/task/%d", p->pid, msg->tid);
	if (access(path, F_OK) == 0)
		return msg->tid;
	snprintf(path, sizeof(path), "/proc/%d", msg->tid);
	return access(path, F_OK) < 0 && errno == ENOENT ? msg->tid : 0;
}

static void producer_read_exe(struct producer *p)
{
	char path[32], exe[1024];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", p->pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n <= 0)
		return;
	exe[n] = '\0';
	free(p->exe);
	p->exe = strdup(exe);
}

/* Takes fd if it succeeds. */
static int producer_add_ring(struct producer *p, const struct marks_message *msg, int fd,
			     struct error *err)
{
	struct marks *m = p->marks;
	struct user *u = p->user;
	struct member *r;
	int e;

	if (u->account != 0 && (u->rings >= m->limits.rings_per_user ||
				u->bytes + msg->size > m->limits.bytes_per_user))
		return error_set(err, -EDQUOT, "user %u has too many rings", u->account);
	if (u->account != 0 && (m->count.rings >= USERS_TOGETHER * m->limits.rings_per_user ||
				m->bytes + msg->size > USERS_TOGETHER * m->limits.bytes_per_user))
		return error_set(err, -EDQUOT, "all users together have too many rings");
	r = calloc(1, sizeof(*r));
	if (!r)
		return error_set(err, -ENOMEM, "out of memory");
	e = marks_ring_open(&r->ring, fd, msg, err);
	if (e < 0) {
		free(r);
		return e;
	}
	r->producer = p;
	r->id = ++m->last_id;
	r->tid = producer_check_tid(p, msg);
	snprintf(r->comm, sizeof(r->comm), "%.*s", (int)sizeof(msg->comm), msg->comm);
	r->version = msg->version;
	r->clock = msg->clock;
	r->boot_ns = now_ns(CLOCK_BOOTTIME);
	/* The process may have executed another program since it connected. */
	producer_read_exe(p);
	TAILQ_INSERT_TAIL(&p->rings, r, list);
	m->count.rings++;
	u->rings++;
	u->bytes += r->ring.size;
	m->bytes += r->ring.size;
	return 0;
}

/*
 * Drains a ring that fills up, or whose thread or program has ended. Rings over the user's limit
 * wait for a drain.
 */
static void producer_drain(struct producer *p)
{
	struct marks *m = p->marks;
	struct member *r, *next;
	unsigned looked = 0;

	for (r = TAILQ_FIRST(&p->rings); r; r = next) {
		bool closed = p->gone || marks_ring_closed(&r->ring);
		int64_t n;

		next = TAILQ_NEXT(r, list);
		p->user->work += ++looked % RINGS_PER_WORK == 0;
		if (m->taken_on_request >= DRAIN_BYTES || !user_may_take(m, p->user)) {
			marks_want(m, now_ns(CLOCK_MONOTONIC) + SHORT_TICK_NS);
			return;
		}
		n = member_drain(r);
		if (n < 0)
			m->count.refused++;
		m->taken_on_request += n > 0 ? (uint64_t)n : 0;
		if (n < 0 || closed)
			member_free(r);
	}
}

/* fd: the received descriptor, or -EBADF. If the message takes it, -EBADF replaces it. */
static int producer_take_message(struct producer *p, const struct marks_message *msg, int *fd)
{
	int e;

	if (msg->magic != MARKS_MESSAGE_MAGIC)
		return -EBADMSG;
	switch (msg->type) {
	case MARKS_RING:
		if (*fd < 0)
			return -EBADMSG;
		e = producer_add_ring(p, msg, *fd, NULL);
		if (e == 0)
			*fd = -EBADF;
		/*
		 * Disconnect a program that sends invalid data. If only memory is short, its other
		 * rings stay.
		 */
		if (e == -EINVAL || e == -EPERM)
			return e;
		p->marks->count.refused += e < 0;
		return 0;
	case MARKS_LOOK:
		if (*fd >= 0)
			return -EBADMSG;
		producer_drain(p);
		return 0;
	default:
		return 0; /* sent by a newer library */
	}
}

/* Returns the only descriptor of a message, or -EBADF. -EBADMSG: several, which it closes. */
static int producer_take_fds(const struct producer *p, struct msghdr *msg)
{
	int fd = -EBADF, r = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			if (fd >= 0)
				r = -EBADMSG;
			producer_close(p, fd);
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		}
	}
	if (r == 0)
		return fd;
	producer_close(p, fd);
	return r;
}

/*
 * Returns 1: a message; 0: none now; -ECONNRESET: closed; -EBADMSG: invalid. *ret_fd: its
 * descriptor. It receives all that a message can carry: the kernel would close others in this
 * thread.
 */
static int producer_receive(struct producer *p, struct marks_message *ret, int *ret_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(CLOSER_MESSAGE_FDS * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n;
	int fd;

	*ret_fd = -EBADF;
	/* Read nothing from a user whose descriptors do not close. */
	if (closer_is_blocked(p->marks->closer, p->user->account))
		return -EUSERS;
	n = recvmsg(p->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
	fd = producer_take_fds(p, &msg);
	if (n > 0 && (size_t)n == sizeof(*ret) && fd != -EBADMSG) {
		*ret_fd = fd;
		return 1;
	}
	producer_close(p, fd);
	return n == 0 ? -ECONNRESET : -EBADMSG;
}

/* Handles up to `turns` messages. Returns 1 if there may be more. */
static int producer_read(struct producer *p, unsigned turns)
{
	for (unsigned i = 0; i < turns && (p->gone || !user_is_exhausted(p->user)); i++) {
		struct marks_message msg;
		int fd, r = producer_receive(p, &msg, &fd);

		if (r > 0) {
			p->messages++;
			p->user->work++;
			r = producer_take_message(p, &msg, &fd);
			producer_close(p, fd);
			if (r < 0)
				p->marks->count.refused++;
		} else if (r == 0) {
			return 0;
		}
		p->marks->count.refused += r == -EUSERS;
		if (r < 0)
			return r;
	}
	return 1;
}

void producer_end(struct producer *p)
{
	if (p->gone)
		return;
	p->gone = true;
	/* Handle the last messages of a short-lived program. */
	if (p->fd >= 0)
		producer_read(p, MESSAGES_AT_END);
	producer_drain(p);
	producer_close_socket(p);
	p->pidfd = close_fd(p->pidfd);
}

static void producer_set_events(struct producer *p, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = &p->socket };

	epoll_ctl(p->marks->epfd, EPOLL_CTL_MOD, p->fd, &e);
}

void producer_event(struct producer *p, const struct source *source)
{
	if (p->gone)
		return;
	if (source == &p->process || producer_read(p, MESSAGES_PER_TURN) < 0) {
		producer_end(p);
	} else if ((p->messages > MESSAGES_PER_DRAIN || user_is_exhausted(p->user)) && !p->paused) {
		p->paused = true;
		producer_set_events(p, 0);
		marks_want(p->marks, now_ns(CLOCK_MONOTONIC) + SHORT_TICK_NS);
	}
}

void producer_read_all(struct producer *p)
{
	if (!p->gone && producer_read(p, MESSAGES_AT_END) < 0)
		producer_end(p);
}

void producers_tidy(struct marks *m, bool resume)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct producer *p, *next;

	for (p = TAILQ_FIRST(&m->producers); p; p = next) {
		next = TAILQ_NEXT(p, list);
		if (resume) {
			p->messages = 0;
			if (p->paused)
				producer_set_events(p, EPOLLIN);
			p->paused = false;
			if (TAILQ_EMPTY(&p->rings) && now > p->connected_ns + NO_RING_NS)
				producer_end(p);
		}
		if (p->gone && TAILQ_EMPTY(&p->rings))
			producer_free(p);
	}
}

static int producer_watch(struct producer *p)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = &p->socket };

	if (epoll_ctl(p->marks->epfd, EPOLL_CTL_ADD, p->fd, &e) < 0)
		return -errno;
	/* A child may have inherited the socket, so only the pidfd reports the process's end. */
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	e.data.ptr = &p->process;
	if (p->pidfd >= 0 && epoll_ctl(p->marks->epfd, EPOLL_CTL_ADD, p->pidfd, &e) < 0)
		return -errno;
	return 0;
}

/* Takes fd if it succeeds. */
static int producer_add(struct marks *m, int fd, uid_t uid, pid_t pid)
{
	uid_t account = user_account(m, uid);
	struct producer *p;
	struct user *u;

	if (m->count.producers >= m->limits.producers + (uid ? 0 : ROOT_PRODUCERS) ||
	    closer_is_blocked(m->closer, account))
		return -EUSERS;
	u = user_get(m, account);
	if (!u || (u->account != 0 && u->refs >= m->limits.producers_per_user))
		return -EUSERS;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->marks = m;
	p->socket.producer = p->process.producer = p;
	p->fd = fd;
	p->pidfd = -EBADF;
	p->user = u;
	p->uid = uid;
	u->refs++;
	p->pid = pid;
	p->connected_ns = now_ns(CLOCK_MONOTONIC);
	TAILQ_INIT(&p->rings);
	TAILQ_INSERT_TAIL(&m->producers, p, list);
	m->count.producers++;
	marks_want(m, p->connected_ns + NO_RING_NS);
	if (producer_watch(p) < 0) {
		m->count.refused++;
		producer_free(p);
	}
	return 0;
}

static void producer_accept(struct marks *m, int fd)
{
	struct ucred peer = { .uid = UID_NOBODY };
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	    producer_add(m, fd, peer.uid, peer.pid) == 0)
		return;
	m->count.refused++;
	closer_close(m->closer, user_account(m, peer.uid), CLOSER_CONNECTION, fd);
}

int producers_accept(struct marks *m)
{
	struct epoll_event e = { .events = 0, .data.ptr = &m->listening };

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(m->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			producer_accept(m, fd);
			continue;
		}
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return i;
		/*
		 * Out of descriptors or memory: stop polling for a second, because the socket
		 * stays readable.
		 */
		epoll_ctl(m->epfd, EPOLL_CTL_MOD, m->listen_fd, &e);
		m->accept_at = now_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC;
		marks_want(m, m->accept_at);
		return i;
	}
	return ACCEPTS_PER_TURN;
}
