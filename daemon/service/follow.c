/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/follow.h"

#include <sys/socket.h>

#include "base/io.h"
#include "base/log.h"

/*
 * The exporter's message: it waits for more. Exporter and daemon are the same program, so no
 * version is needed.
 */
struct done {
	uint64_t from, to; /* byte range that it needs no more; `to` is exclusive; empty: nothing */
	uint64_t cpu_ns;   /* that it has taken */
};

#define MESSAGES_PER_TURN 16

struct follow {
	struct spool *spool;
	int fd; /* owned; a socket that keeps message boundaries */
	struct loop_source *source;
	void (*waiting)(void *userdata);
	void *userdata;
	uint64_t waits, wakes; /* messages of each end */
	uint64_t cpu_ns;       /* of the exporter, as last reported */
	bool ended;
};

static void follow_take_message(struct follow *f, const struct done *done)
{
	static struct log_limit limit = LOG_LIMIT_INIT;
	int r = f->spool && done->from < done->to ? spool_give_back(f->spool, done->from, done->to)
						  : 0;

	f->waits++;
	f->cpu_ns = done->cpu_ns;
	if (r < 0 && r != -EINVAL && log_limit_pass(&limit))
		log_notice("%s: cannot free the space of exported data: %s", f->spool->path,
			   strerror(-r));
	f->waiting(f->userdata);
}

static void follow_on_message(void *userdata, int fd, uint32_t revents _unused_)
{
	struct follow *f = userdata;

	loop_doing("an exporter's messages", NULL);
	for (int i = 0; i < MESSAGES_PER_TURN; i++) {
		struct done done;
		ssize_t n = recv(fd, &done, sizeof(done), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		/* The exporter has ended or misbehaves; its result will say why. */
		if (n != sizeof(done)) {
			loop_source_enable(f->source, false);
			return;
		}
		follow_take_message(f, &done);
	}
}

int follow_new(struct follow **ret, struct loop *loop, struct spool *spool,
	       void (*waiting)(void *userdata), void *userdata, int *ret_child_fd,
	       struct error *err)
{
	_cleanup_(follow_freep) struct follow *f = calloc(1, sizeof(*f));
	_cleanup_close_ int theirs = -EBADF;
	int ends[2], r;

	if (!f)
		return error_errno(err, -ENOMEM, "exporter");
	f->spool = spool;
	f->fd = -EBADF;
	f->waiting = waiting;
	f->userdata = userdata;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_errno(err, -errno, "socketpair");
	f->fd = ends[0];
	theirs = ends[1];
	r = loop_add_io(loop, &f->source, f->fd, EPOLLIN, follow_on_message, f);
	if (r < 0)
		return error_errno(err, r, "can't watch the exporter");
	*ret = TAKE_PTR(f);
	*ret_child_fd = TAKE_FD(theirs);
	return 0;
}

struct follow *follow_free(struct follow *f)
{
	if (!f)
		return NULL;
	loop_source_free(f->source);
	close_fd(f->fd);
	free(f);
	return NULL;
}

void follow_wake(struct follow *f)
{
	/* If the queue is full, no message is needed: unread ones wake the exporter, too. */
	if (!f->ended && send(f->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		f->wakes++;
}

bool follow_starves(const struct follow *f)
{
	return f->waits > f->wakes;
}

uint64_t follow_cpu_ns(const struct follow *f)
{
	return f->cpu_ns;
}

void follow_end(struct follow *f)
{
	if (f->ended)
		return;
	f->ended = true;
	shutdown(f->fd, SHUT_WR);
}

int follow_wait(int fd, uint64_t from, uint64_t to)
{
	const struct done done = { from, to, now_ns(CLOCK_PROCESS_CPUTIME_ID) };
	char wakes[16];
	ssize_t n;

	do {
		n = send(fd, &done, sizeof(done), MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	do {
		n = recv(fd, wakes, sizeof(wakes), 0);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n > 0;
}
