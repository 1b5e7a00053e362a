/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl wait`: a session with the conditions' events, until one is met. As the command of
 * `record --ring` it ends a flight recorder.
 */
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "base/io.h"
#include "base/place.h"
#include "firings.h"

#define AFTER_NS NSEC_PER_SEC
/* The daemon answers right after the session's end. */
#define REPLY_MS 5000
/* A condition is known to be met about a second after the event. */
#define KNOWN_NS (2 * NSEC_PER_SEC)
#define PARENT_ENDED "the process that started it has ended"

struct waiting {
	struct firings firings;
	int parent_fd;	/* pidfd; negative: the parent can't be watched */
	uint64_t until; /* CLOCK_BOOTTIME: what happens later does not count */
	uint64_t at;	/* CLOCK_BOOTTIME: when the first condition was met; 0: not yet */
	struct buf text;
};

static void waiting_take(const Traced__Control__Firing *m, void *data)
{
	struct waiting *w = data;

	if (w->at || m->more || m->at_ns > w->until)
		return;
	w->at = m->at_ns;
	firing_put(w->firings.triggers, m, &w->text);
}

/* Expires at a time of CLOCK_BOOTTIME, also if the machine sleeps then. Returns it or -errno. */
static int waiting_timer(uint64_t until)
{
	const struct itimerspec at = { .it_value = { .tv_sec = (time_t)(until / NSEC_PER_SEC),
						     .tv_nsec = (long)(until % NSEC_PER_SEC) } };
	_cleanup_close_ int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);

	if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* The session's end, and its reason. */
static int waiting_receive(struct link *link, uint64_t id, int timeout_ms, struct error *err)
{
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	int r = control_client_receive(link->client, timeout_ms, &reply, err);

	if (r < 0)
		return link_explain(link, r, err);
	if (r && reply->id == id)
		return reply->error ? control_error(reply->error, err)
				    : error_set(err, -ECANCELED, "the session has ended");
	return 0;
}

/* Until a condition is met, or the timer expires (negative: there is none). */
static int waiting_run(struct waiting *w, struct link *link, uint64_t id, int timer,
		       struct error *err)
{
	int r = 1;

	while (r >= 0 && !w->at) {
		struct pollfd fds[4] = {
			{ .fd = w->firings.pipe, .events = POLLIN },
			{ .fd = control_client_fd(link->client), .events = POLLIN },
			{ .fd = w->parent_fd, .events = POLLIN },
			{ .fd = timer, .events = POLLIN },
		};

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0) {
			if (errno == EINTR)
				continue;
			return error_errno(err, -errno, "poll");
		}
		if (fds[2].revents)
			return error_set(err, -ECANCELED, PARENT_ENDED);
		if (fds[0].revents)
			r = firings_read(&w->firings, waiting_take, w, err);
		if (r == 0 && !w->at)
			return waiting_receive(link, id, REPLY_MS, err)
				       ?: error_set(err, -ECANCELED,
						    "the session with the events has ended");
		if (r > 0 && !w->at && fds[1].revents)
			r = waiting_receive(link, id, 0, err) ?: 1;
		if (r > 0 && fds[3].revents)
			return 0;
	}
	return MIN(r, 0);
}

/* Lets the recording go on for a while, without a session of its own. */
static int waiting_linger(const struct waiting *w, uint64_t until, struct error *err)
{
	_cleanup_close_ int timer = waiting_timer(until);
	struct pollfd fds[2] = { { .fd = w->parent_fd, .events = POLLIN },
				 { .fd = timer, .events = POLLIN } };

	if (timer < 0)
		return error_errno(err, timer, "timerfd");
	while (poll(fds, ARRAY_SIZE(fds), -1) < 0)
		if (errno != EINTR)
			return error_errno(err, -errno, "poll");
	return 0;
}

static int wait_check_options(const struct options *o, struct triggers *t, struct error *err)
{
	int r;

	if (!o->on.count) {
		error_set(err, -EINVAL, "wait: there is no condition");
		return error_hint(err, "--on 'sched.delay > 5ms'");
	}
	r = triggers_init(t, o, err);
	if (r == 0 && t->has_lost) {
		error_set(err, -EINVAL, "wait: \"lost\" is a condition of a flight recorder");
		return error_hint(err, "tracectl start --ring --on 'lost > 0'");
	}
	return r;
}

/*
 * A descriptor of the process that started us; -EBADF: this kernel has none, or it is in another
 * pid namespace. If the parent has ended, getppid() names its reaper, mostly of another session. We
 * differ from a live parent's session only as its leader.
 */
static int waiting_open_parent(struct error *err)
{
	const pid_t parent = getppid(), session = getsid(0), theirs = getsid(parent);
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, parent, 0);
	bool ended = (fd < 0 && errno == ESRCH) || getppid() != parent;

	/* A security module may hide the parent's session: then it is negative. */
	ended |= session != getpid() && theirs >= 0 && theirs != session;
	if (parent && ended)
		return error_set(err, -ECANCELED, PARENT_ENDED);
	return fd < 0 ? -EBADF : TAKE_FD(fd);
}

static int wait_run(const struct options *o)
{
	_cleanup_triggers_ struct triggers triggers = TRIGGERS_INIT;
	_cleanup_link_ struct link link = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	/* The recording whose command this is may end first. */
	_cleanup_close_ int parent_fd = waiting_open_parent(&err);
	struct waiting w = { .firings = { .triggers = &triggers }, .parent_fd = parent_fd };
	struct options changed = *o;
	_cleanup_close_ int fd = -EBADF, timer = -EBADF;
	char name[64];
	uint64_t id;
	int r;

	changed.ring = true;
	snprintf(name, sizeof(name), "wait-%d" TRIGGERS_SUFFIX, (int)getpid());
	if (parent_fd == -ECANCELED)
		return cli_fail(&err);
	if (wait_check_options(&changed, &triggers, &err) < 0)
		return cli_usage(&err);
	r = link_open(&link, o, LINK_LISTENING, &err);
	/* It may be the command of a private recording, whose daemon takes no other client. */
	if (link_no_daemon(r) && !link_has_daemon)
		error_hint(&err, "'tracectl record' uses a running daemon, too: %s",
			   place_start_daemon());
	if (r < 0)
		return cli_fail(&err);
	fd = triggers_watch(&triggers, &link, name, &id, &err);
	if (fd < 0)
		return cli_fail(&err);
	w.firings.pipe = fd;
	w.until = o->duration_ns ? now_ns(CLOCK_BOOTTIME) + o->duration_ns : UINT64_MAX;
	timer = o->duration_ns ? waiting_timer(w.until + KNOWN_NS) : -EBADF;
	if (o->duration_ns && timer < 0)
		return error_errno(&err, timer, "timerfd"), cli_fail(&err);
	r = waiting_run(&w, &link, id, timer, &err);
	fd = close_fd(fd);
	link_deinit(&link);
	if (r == 0 && w.at)
		r = waiting_linger(&w, w.at + (o->after_ns ?: AFTER_NS), &err);
	if (r == 0 && w.at && !o->quiet)
		cli_line(stderr, "%s", buf_string(&w.text) ?: "?");
	if (r == 0 && !w.at && !o->quiet)
		cli_warn("no condition was met");
	buf_deinit(&w.text);
	buf_deinit(&w.firings.in);
	if (r < 0)
		return cli_fail(&err);
	return w.at ? CLI_WHOLE : CLI_NOTHING;
}

static const struct option_text wait_texts[] = {
	{ OPT_ON, "wait until 'sched.delay > 5ms'; may be repeated" },
	{ OPT_AFTER, "go on for so long after the event (1s)" },
	{ OPT_DURATION, "wait at most so long; the exit status is 4 then" },
	{ 0 },
};

const struct command command_wait = {
	.name = "wait",
	.synopsis = "--on CONDITION [-t TIME] [--after TIME]",
	.summary = "wait until a condition of a trigger is met",
	.text = "Ends when the first of the conditions is met, and --after is over (1s). Its exit\n"
		"status is 4 if none was met within TIME, which is known two seconds later. It\n"
		"also ends with the process that started it. Needs a running traced.\n"
		"\n"
		"  tracectl wait --on 'irq.max > 1ms' && date\n"
		"  tracectl record --ring -o late.json -- tracectl wait --on 'sched.delay > 5ms'",
	.texts = wait_texts,
	.options = OPTION_SET(OPTION(ON), OPTION(AFTER), OPTION(DURATION), OPTION(QUIET)),
	.run = wait_run,
};
