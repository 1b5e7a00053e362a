/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/io.h"
#include "tool.h"

/* mosquitto_sub's exit status after its time (-W). */
#define STATUS_TIMEOUT 27
/* Between two marks: the first ones may be too early, or be dropped by a broker that is busy. */
#define MARK_FIRST_NS (100 * NSEC_PER_MSEC)
#define MARK_LAST_NS (1600 * NSEC_PER_MSEC)
/* Brokers other than mosquitto may send the mark before the last messages. */
#define QUIET_NS (200 * NSEC_PER_MSEC)
/* The bound of the wait for silence: boards at work send statuses all the time. */
#define REST_NS NSEC_PER_SEC
#define URL_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:/[]@%"

/* A call of broker_listen() and its two programs. */
struct listener {
	const struct listening *of;
	struct buf *lines;
	size_t seen; /* bytes of whole lines that were looked at */
	bool has_mark, has_message, is_closed;
	struct buf topic_url, mark, mark_url;
	pid_t sub, pub; /* 0: none */
	int fd;
	uint64_t until, quiet, next_mark, mark_gap; /* CLOCK_MONOTONIC */
};

int broker_put_url(const char *broker, const char *topic, struct buf *url, struct error *err)
{
	size_t len = strlen(broker);

	if (strncmp(broker, "mqtts://", 8) != 0 || strspn(broker, URL_CHARS) != len || len < 9) {
		error_set(err, -EINVAL, "--broker: '%s' is no broker with TLS", broker);
		return error_hint(err, "for example mqtts://broker.example:8884");
	}
	while (broker[len - 1] == '/')
		len--;
	buf_printf(url, "%.*s/%s", (int)len, broker, topic);
	return buf_string(url) ? 0 : error_errno(err, -ENOMEM, "the broker");
}

int broker_explain(int r, const char *program, struct error *err)
{
	if (r == -ENOENT)
		return error_hint(err, "the package mosquitto-clients has it");
	if (r <= 0)
		return r;
	error_set(err, -EIO, "%s ended with status %d", program, r);
	return error_hint(err, "~/.config/%s has its options: --cafile, --cert, --key", program);
}

/* Nobody else knows the topic of the mark. */
static int listener_name_mark(struct listener *l, struct error *err)
{
	uint64_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return error_errno(err, -errno, "getrandom");
	buf_printf(&l->mark, "traced/%s/all/end/%016" PRIx64, l->of->fleet, random);
	if (!buf_string(&l->mark))
		return error_errno(err, -ENOMEM, "the broker");
	r = broker_put_url(l->of->broker, l->of->topic, &l->topic_url, err);
	return r < 0 ? r : broker_put_url(l->of->broker, l->mark.data, &l->mark_url, err);
}

/*
 * With QoS 0, as mosquitto drops retained messages of QoS 1 beyond its max_queued_messages, 1000 by
 * default. -W ends it if we are killed.
 */
static int listener_subscribe(struct listener *l, struct error *err)
{
	char seconds[24];
	const char *const argv[] = { "mosquitto_sub",
				     "-V",
				     "5",
				     "-q",
				     "0",
				     "-W",
				     seconds,
				     "--quiet",
				     "-F",
				     "%t %x",
				     "-L",
				     l->topic_url.data,
				     "-t",
				     l->mark.data,
				     NULL };
	int pair[2], r;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "pipe");
	l->fd = pair[0];
	snprintf(seconds, sizeof(seconds), "%" PRIu64, l->of->most_ns / NSEC_PER_SEC + 2);
	r = tool_start(argv, -EBADF, pair[1], -EBADF, 0, &l->sub, err);
	close_fd(pair[1]);
	return broker_explain(r, argv[0], err);
}

/* Publishes the mark, if it is due and no other one is on its way. */
static int listener_mark(struct listener *l, uint64_t now, struct error *err)
{
	const char *const argv[] = { "mosquitto_pub",  "-V", "5", "-q", "1", "--quiet", "-n", "-L",
				     l->mark_url.data, NULL };

	if (l->pub && tool_has_ended(&l->pub)) {
		l->next_mark = now + l->mark_gap;
		l->mark_gap = MIN(l->mark_gap * 2, MARK_LAST_NS);
	}
	if (l->pub || now < l->next_mark)
		return 0;
	return broker_explain(tool_start(argv, -EBADF, -EBADF, -EBADF, 0, &l->pub, err), argv[0],
			      err);
}

/* Takes the marks out of the lines. */
static void listener_look(struct listener *l)
{
	const char *end;

	while ((end = memchr(l->lines->data + l->seen, '\n', l->lines->len - l->seen))) {
		const char *line = l->lines->data + l->seen;
		size_t len = (size_t)(end - line) + 1;

		if (len > l->mark.len && !memcmp(line, l->mark.data, l->mark.len)) {
			l->has_mark = true;
			buf_replace(l->lines, l->seen, len, "", 0);
		} else {
			l->has_message = true;
			l->seen += len;
		}
	}
}

static int listener_read(struct listener *l, struct error *err)
{
	char *to = buf_reserve(l->lines, 65536);
	ssize_t n = to ? read(l->fd, to, 65536) : -1;
	const bool had_mark = l->has_mark;
	uint64_t now;

	if (!to)
		return error_errno(err, -ENOMEM, "the broker");
	if (n < 0)
		return errno == EINTR ? 0 : error_errno(err, -errno, "%s", l->of->topic);
	l->is_closed = n == 0;
	l->lines->len += (size_t)n;
	if (l->lines->len > l->of->max)
		return error_errno(err, -EFBIG, "%s", l->of->topic);
	listener_look(l);
	now = now_ns(CLOCK_MONOTONIC);
	l->quiet = now + QUIET_NS;
	if (l->has_mark && !had_mark)
		l->until = MIN(l->until, now + REST_NS);
	return 0;
}

static bool listener_is_done(const struct listener *l, uint64_t now)
{
	return l->is_closed || now >= l->until || (l->of->is_one && l->has_message) ||
	       (l->has_mark && now >= l->quiet);
}

static int listener_run(struct listener *l, struct error *err)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	int r = 0;

	while (r == 0 && !listener_is_done(l, now)) {
		struct pollfd fd = { .fd = l->fd, .events = POLLIN };
		int ready;

		if (!l->has_mark)
			r = listener_mark(l, now, err);
		ready = r == 0 ? poll(&fd, 1, 20) : 0;
		if (ready > 0)
			r = listener_read(l, err);
		now = now_ns(CLOCK_MONOTONIC);
	}
	return r;
}

int broker_listen(const struct listening *listening, struct buf *ret, struct error *err)
{
	struct listening bounded = *listening;
	struct listener l = {
		.of = &bounded, .lines = ret, .fd = -EBADF, .mark_gap = MARK_FIRST_NS
	};
	int r, status;

	bounded.most_ns = listening->most_ns ?: LISTEN_NS;
	l.until = now_ns(CLOCK_MONOTONIC) + bounded.most_ns;
	r = listener_name_mark(&l, err);
	if (r == 0)
		r = listener_subscribe(&l, err);
	if (r == 0)
		r = listener_run(&l, err);
	tool_end(&l.pub);
	status = l.is_closed ? tool_wait(&l.sub) : 0;
	tool_end(&l.sub);
	if (r == 0 && status != STATUS_TIMEOUT)
		r = broker_explain(status, "mosquitto_sub", err);
	close_fd(l.fd);
	buf_deinit(&l.topic_url);
	buf_deinit(&l.mark);
	buf_deinit(&l.mark_url);
	return r < 0 ? r : l.has_mark || (listening->is_one && l.has_message);
}
