/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "orders.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "phc.h"

/* One write for a line: ssh and pipes pass it on whole. */
_printf_(1, 2) static void answer(const char *fmt, ...)
{
	char line[3 * ORDER_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n > 0)
		write_full(STDERR_FILENO, line, MIN((size_t)n, sizeof(line) - 1));
}

static void answer_clock(const struct orders *o, uint64_t number)
{
	struct true_time t, phc;
	char more[ORDER_MAX + 64] = "";

	true_time_read(&t);
	phc_read(o->phc, &phc);
	if (phc.utc)
		snprintf(more, sizeof(more), " %" PRIu64 " %" PRIu64 " %" PRIu64, phc.boot, phc.utc,
			 phc.bound);
	if (t.utc || phc.utc)
		answer("@clock %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "%s\n", number, t.boot,
		       t.utc, t.bound, more);
	else
		answer("@clock %" PRIu64 " %" PRIu64 "\n", number, t.boot);
}

static void orders_obey(struct orders *o, const char *line)
{
	uint64_t number;
	char end;

	if (sscanf(line, "clock %" SCNu64 "%c", &number, &end) == 1)
		answer_clock(o, number);
	else if (!strcmp(line, "go"))
		o->go = !o->stop;
	else if (!strcmp(line, "quiet"))
		o->quiet = true;
	else if (!strcmp(line, "stop"))
		o->stop = true;
}

static void orders_end(struct orders *o)
{
	o->fd = -EBADF;
	o->gone = true;
}

void orders_take(struct orders *o)
{
	ssize_t n = read(o->fd, o->line + o->len, sizeof(o->line) - o->len);
	char *from = o->line, *end;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		orders_end(o);
		return;
	}
	o->len += (unsigned)n;
	while ((end = memchr(from, '\n', o->len))) {
		*end++ = '\0';
		orders_obey(o, from);
		o->len -= (unsigned)(end - from);
		from = end;
	}
	memmove(o->line, from, o->len);
	if (o->len == sizeof(o->line))
		orders_end(o);
}

/* Any signal but the end of a child, as the private daemon's parent. */
static bool is_interrupted(int signal_fd)
{
	struct signalfd_siginfo info;

	return read(signal_fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo != SIGCHLD;
}

void orders_greet(void)
{
	answer("@here\n");
}

int orders_wait(struct orders *o, int signal_fd, struct error *err)
{
	struct pollfd fds[2] = { { .fd = signal_fd, .events = POLLIN }, { .events = POLLIN } };

	answer("@armed\n");
	while (!o->go && !o->stop && !o->gone) {
		fds[1].fd = o->fd;
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return error_errno(err, -errno, "poll");
		if (fds[0].revents && is_interrupted(signal_fd))
			break;
		if (fds[1].revents)
			orders_take(o);
	}
	/* A "stop" right behind it ends the recording, which has begun. */
	return o->go && !o->gone ? 0 : error_set(err, -ECANCELED, "cancelled before it began");
}
