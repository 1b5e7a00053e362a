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
	const struct listening *l;
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
static int listener_name_mark(struct listener *e, struct error *err)
{
	uint64_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return error_errno(err, -errno, "getrandom");
	buf_printf(&e->mark, "traced/%s/all/end/%016" PRIx64, e->l->fleet, random);
	if (!buf_string(&e->mark))
		return error_errno(err, -ENOMEM, "the broker");
	r = broker_put_url(e->l->broker, e->l->topic, &e->topic_url, err);
	return r < 0 ? r : broker_put_url(e->l->broker, e->mark.data, &e->mark_url, err);
}

/*
 * With QoS 0, as mosquitto drops retained messages of QoS 1 beyond its max_queued_messages, 1000 by
 * default. -W ends it if we are killed.
 */
static int listener_subscribe(struct listener *e, struct error *err)
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
				     e->topic_url.data,
				     "-t",
				     e->mark.data,
				     NULL };
	int pair[2], r;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "pipe");
	e->fd = pair[0];
	snprintf(seconds, sizeof(seconds), "%" PRIu64, e->l->most_ns / NSEC_PER_SEC + 2);
	r = tool_start(argv, -EBADF, pair[1], -EBADF, 0, &e->sub, err);
	close_fd(pair[1]);
	return broker_explain(r, argv[0], err);
}

/* Publishes the mark, if it is due and no other one is on its way. */
static int listener_mark(struct listener *e, uint64_t now, struct error *err)
{
	const char *const argv[] = { "mosquitto_pub",  "-V", "5", "-q", "1", "--quiet", "-n", "-L",
				     e->mark_url.data, NULL };

	if (e->pub && tool_has_ended(&e->pub)) {
		e->next_mark = now + e->mark_gap;
		e->mark_gap = MIN(e->mark_gap * 2, MARK_LAST_NS);
	}
	if (e->pub || now < e->next_mark)
		return 0;
	return broker_explain(tool_start(argv, -EBADF, -EBADF, -EBADF, 0, &e->pub, err), argv[0],
			      err);
}

/* Takes the marks out of the lines. */
static void listener_look(struct listener *e)
{
	const char *end;

	while ((end = memchr(e->lines->data + e->seen, '\n', e->lines->len - e->seen))) {
		const char *line = e->lines->data + e->seen;
		size_t len = (size_t)(end - line) + 1;

		if (len > e->mark.len && !memcmp(line, e->mark.data, e->mark.len)) {
			e->has_mark = true;
			buf_replace(e->lines, e->seen, len, "", 0);
		} else {
			e->has_message = true;
			e->seen += len;
		}
	}
}

static int listener_read(struct listener *e, struct error *err)
{
	char *to = buf_reserve(e->lines, 65536);
	ssize_t n = to ? read(e->fd, to, 65536) : -1;
	const bool had_mark = e->has_mark;
	uint64_t now;

	if (!to)
		return error_errno(err, -ENOMEM, "the broker");
	if (n < 0)
		return errno == EINTR ? 0 : error_errno(err, -errno, "%s", e->l->topic);
	e->is_closed = n == 0;
	e->lines->len += (size_t)n;
	if (e->lines->len > e->l->max)
		return error_errno(err, -EFBIG, "%s", e->l->topic);
	listener_look(e);
	now = now_ns(CLOCK_MONOTONIC);
	e->quiet = now + QUIET_NS;
	if (e->has_mark && !had_mark)
		e->until = MIN(e->until, now + REST_NS);
	return 0;
}

static bool listener_is_done(const struct listener *e, uint64_t now)
{
	return e->is_closed || now >= e->until || (e->l->is_one && e->has_message) ||
	       (e->has_mark && now >= e->quiet);
}

static int listener_run(struct listener *e, struct error *err)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	int r = 0;

	while (r == 0 && !listener_is_done(e, now)) {
		struct pollfd fd = { .fd = e->fd, .events = POLLIN };
		int ready;

		if (!e->has_mark)
			r = listener_mark(e, now, err);
		ready = r == 0 ? poll(&fd, 1, 20) : 0;
		if (ready > 0)
			r = listener_read(e, err);
		now = now_ns(CLOCK_MONOTONIC);
	}
	return r;
}

int broker_listen(const struct listening *l, struct buf *ret, struct error *err)
{
	struct listening bounded = *l;
	struct listener e = {
		.l = &bounded, .lines = ret, .fd = -EBADF, .mark_gap = MARK_FIRST_NS
	};
	int r, status;

	bounded.most_ns = l->most_ns ?: LISTEN_NS;
	e.until = now_ns(CLOCK_MONOTONIC) + bounded.most_ns;
	r = listener_name_mark(&e, err);
	if (r == 0)
		r = listener_subscribe(&e, err);
	if (r == 0)
		r = listener_run(&e, err);
	tool_end(&e.pub);
	status = e.is_closed ? tool_wait(&e.sub) : 0;
	tool_end(&e.sub);
	if (r == 0 && status != STATUS_TIMEOUT)
		r = broker_explain(status, "mosquitto_sub", err);
	close_fd(e.fd);
	buf_deinit(&e.topic_url);
	buf_deinit(&e.mark);
	buf_deinit(&e.mark_url);
	return r < 0 ? r : e.has_mark || (l->is_one && e.has_message);
}
