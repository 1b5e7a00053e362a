/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loop on plain kernel interfaces: one epoll, one timerfd per clock, one signalfd. Timers and
 * children are few, so their lists are searched linearly.
 */
#include "daemon/service/loop.h"

#include <string.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "base/io.h"
#include "daemon/service/loop_late.h"
#include "daemon/service/notify.h"

#define BATCH 32
#define END_MS 500 /* for killed children when the loop ends */
#define PRIORITIES (LOOP_NORMAL + 1)

enum source_kind { IO, TIMER, DEFERRED, SIGNAL, CHILD };

struct loop_source {
	TAILQ_ENTRY(loop_source) list;	  /* all sources */
	TAILQ_ENTRY(loop_source) waiting; /* pending sources of the same priority */
	struct loop *loop;
	enum source_kind kind;
	enum loop_priority priority;
	bool enabled, pending;
	union {
		loop_io_t io;
		loop_call_t call;
		loop_child_t child;
	};
	void *userdata;
	int fd; /* IO */
	uint32_t events, revents;
	clockid_t clock; /* TIMER */
	uint64_t at_us;
	int number;  /* SIGNAL */
	pid_t pid;   /* CHILD; 0: reaped */
	bool killed; /* CHILD; only waits to be reaped, then the loop frees it */
	siginfo_t status;
};

TAILQ_HEAD(source_list, loop_source);

struct alarm {
	clockid_t clock;
	int fd;
	uint64_t set_us; /* UINT64_MAX: not set */
};

struct loop {
	struct source_list all, pending[PRIORITIES];
	int epfd, signals;
	sigset_t watched;
	struct alarm alarms[2];
	struct loop_source *watchdog;
	uint64_t watchdog_us;
	bool ended;
	int code;
};

static uint64_t loop_now_us(clockid_t clock)
{
	return now_ns(clock) / NSEC_PER_USEC;
}

/*
 * epoll's data pointer: for the loop's own descriptors the address of their field, else the
 * source.
 */
static int loop_watch(struct loop *l, int fd, uint32_t events, void *what)
{
	struct epoll_event e = { .events = events, .data.ptr = what };

	return epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int loop_open_alarm(struct loop *l, struct alarm *a, clockid_t clock)
{
	a->clock = clock;
	a->set_us = UINT64_MAX;
	a->fd = timerfd_create(clock, TFD_CLOEXEC | TFD_NONBLOCK);
	return a->fd < 0 ? -errno : loop_watch(l, a->fd, EPOLLIN, &a->fd);
}

int loop_new(struct loop **ret)
{
	_cleanup_(loop_freep) struct loop *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	TAILQ_INIT(&l->all);
	for (size_t i = 0; i < PRIORITIES; i++)
		TAILQ_INIT(&l->pending[i]);
	l->signals = l->alarms[0].fd = l->alarms[1].fd = -EBADF;
	sigemptyset(&l->watched);
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0)
		return -errno;
	r = loop_open_alarm(l, &l->alarms[0], CLOCK_MONOTONIC);
	if (r >= 0)
		r = loop_open_alarm(l, &l->alarms[1], CLOCK_BOOTTIME);
	if (r < 0)
		return r;
	l->signals = signalfd(-1, &l->watched, SFD_CLOEXEC | SFD_NONBLOCK);
	r = l->signals < 0 ? -errno : loop_watch(l, l->signals, EPOLLIN, &l->signals);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(l);
	return 0;
}

static void source_set_pending(struct loop_source *s, bool pending)
{
	struct source_list *list = &s->loop->pending[s->priority];

	if (s->pending == pending)
		return;
	s->pending = pending;
	if (pending)
		TAILQ_INSERT_TAIL(list, s, waiting);
	else
		TAILQ_REMOVE(list, s, waiting);
}

static void source_drop(struct loop_source *s)
{
	TAILQ_REMOVE(&s->loop->all, s, list);
	free(s);
}

static void loop_reap(struct loop *l)
{
	struct loop_source *s, *next;

	for (s = TAILQ_FIRST(&l->all); s; s = next) {
		siginfo_t si = { 0 };

		next = TAILQ_NEXT(s, list);
		if (s->kind != CHILD || !s->pid ||
		    waitid(P_PID, (id_t)s->pid, &si, WEXITED | WNOHANG) < 0 || !si.si_pid)
			continue;
		s->pid = 0;
		s->status = si;
		if (s->killed)
			source_drop(s);
		else if (s->enabled)
			source_set_pending(s, true);
	}
}

/* Gives killed children a moment to end. Those that do not are left to init. */
static void loop_reap_last(struct loop *l)
{
	const struct timespec step = { .tv_nsec = NSEC_PER_MSEC };

	for (int ms = 0; !TAILQ_EMPTY(&l->all) && ms < END_MS; ms++) {
		loop_reap(l);
		if (!TAILQ_EMPTY(&l->all))
			nanosleep(&step, NULL);
	}
	while (!TAILQ_EMPTY(&l->all))
		source_drop(TAILQ_FIRST(&l->all));
}

struct loop *loop_free(struct loop *l)
{
	struct loop_source *s, *next;

	if (!l)
		return NULL;
	for (s = TAILQ_FIRST(&l->all); s; s = next) {
		next = TAILQ_NEXT(s, list);
		loop_source_free(s);
	}
	loop_reap_last(l);
	close_fd(l->signals);
	close_fd(l->alarms[0].fd);
	close_fd(l->alarms[1].fd);
	close_fd(l->epfd);
	free(l);
	return NULL;
}

/* Marks elapsed timers pending and sets the timerfds to the next ones. */
static int loop_check_timers(struct loop *l)
{
	for (size_t i = 0; i < ARRAY_SIZE(l->alarms); i++) {
		struct alarm *a = &l->alarms[i];
		uint64_t now = loop_now_us(a->clock), next = UINT64_MAX;
		struct itimerspec t = { 0 };
		struct loop_source *s;

		TAILQ_FOREACH(s, &l->all, list)
		{
			if (s->kind != TIMER || !s->enabled || s->clock != a->clock)
				continue;
			if (s->at_us <= now)
				source_set_pending(s, true);
			else
				next = MIN(next, s->at_us);
		}
		if (next == a->set_us)
			continue;
		if (next != UINT64_MAX) {
			t.it_value.tv_sec = (time_t)(next / USEC_PER_SEC);
			t.it_value.tv_nsec = (long)(next % USEC_PER_SEC * NSEC_PER_USEC);
		}
		if (timerfd_settime(a->fd, TFD_TIMER_ABSTIME, &t, NULL) < 0)
			return -errno;
		a->set_us = next;
	}
	return 0;
}

static void loop_read_signals(struct loop *l)
{
	struct signalfd_siginfo si;
	struct loop_source *s;

	while (read(l->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			loop_reap(l);
		TAILQ_FOREACH(s, &l->all, list)
		if (s->kind == SIGNAL && s->number == (int)si.ssi_signo)
			source_set_pending(s, true);
	}
}

static void loop_take_event(struct loop *l, const struct epoll_event *e)
{
	struct loop_source *s = e->data.ptr;

	if (e->data.ptr == &l->signals) {
		loop_read_signals(l);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(l->alarms); i++) {
		uint64_t count;

		if (e->data.ptr != &l->alarms[i].fd)
			continue;
		(void)!read(l->alarms[i].fd, &count, sizeof(count));
		l->alarms[i].set_us = UINT64_MAX;
		return;
	}
	s->revents = s->pending ? s->revents | e->events : e->events;
	source_set_pending(s, true);
}

static struct loop_source *loop_first_pending(struct loop *l)
{
	for (size_t i = 0; i < PRIORITIES; i++)
		if (!TAILQ_EMPTY(&l->pending[i]))
			return TAILQ_FIRST(&l->pending[i]);
	return NULL;
}

static void source_serve(struct loop_source *s)
{
	uint64_t began = loop_late_begin();

	source_set_pending(s, false);
	if (s->kind != IO && s->kind != SIGNAL)
		s->enabled = false;
	if (s->kind == IO)
		s->io(s->userdata, s->fd, s->revents);
	else if (s->kind == CHILD)
		s->child(s->userdata, &s->status);
	else
		s->call(s->userdata);
	loop_late_end(began);
}

int loop_step(struct loop *l, uint64_t timeout_us)
{
	struct epoll_event events[BATCH];
	struct loop_source *s;
	int n, r, timeout_ms = -1;

	if (l->ended)
		return -ESTALE;
	r = loop_check_timers(l);
	if (r < 0)
		return r;
	if (loop_first_pending(l))
		timeout_ms = 0;
	else if (timeout_us != UINT64_MAX)
		timeout_ms = (int)MIN((timeout_us + 999) / 1000, (uint64_t)INT32_MAX);
	n = epoll_wait(l->epfd, events, BATCH, timeout_ms);
	if (n < 0 && errno != EINTR)
		return -errno;
	for (int i = 0; i < n; i++)
		loop_take_event(l, &events[i]);
	r = loop_check_timers(l);
	if (r < 0)
		return r;
	s = loop_first_pending(l);
	if (s)
		source_serve(s);
	return 0;
}

int loop_run(struct loop *l)
{
	while (!l->ended) {
		int r = loop_step(l, UINT64_MAX);

		if (r < 0)
			return r;
	}
	return l->code;
}

void loop_exit(struct loop *l, int code)
{
	l->ended = true;
	l->code = code;
}

bool loop_has_ended(const struct loop *l)
{
	return l->ended;
}

static int loop_feed_watchdog(struct loop *l)
{
	notify("WATCHDOG=1");
	return loop_timer_in(l->watchdog, l->watchdog_us / 2);
}

static void loop_on_watchdog(void *userdata)
{
	loop_feed_watchdog(userdata);
}

int loop_serve_watchdog(struct loop *l)
{
	int r;

	l->watchdog_us = notify_watchdog_us();
	if (!l->watchdog_us || l->watchdog)
		return 0;
	r = loop_add_timer(l, &l->watchdog, CLOCK_MONOTONIC, 0, loop_on_watchdog, l);
	return r < 0 ? r : loop_feed_watchdog(l);
}

static struct loop_source *source_alloc(struct loop *l, enum source_kind kind, void *userdata)
{
	struct loop_source *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->loop = l;
	s->kind = kind;
	s->priority = LOOP_NORMAL;
	s->userdata = userdata;
	s->fd = -EBADF;
	TAILQ_INSERT_TAIL(&l->all, s, list);
	return s;
}

int loop_add_io(struct loop *l, struct loop_source **ret, int fd, uint32_t events, loop_io_t call,
		void *userdata)
{
	struct loop_source *s = source_alloc(l, IO, userdata);
	int r;

	if (!s)
		return -ENOMEM;
	s->io = call;
	s->fd = fd;
	s->events = events;
	r = loop_source_enable(s, true);
	if (r < 0) {
		loop_source_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int loop_io_set_events(struct loop_source *s, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = s };

	if (s->events == events)
		return 0;
	if (s->enabled && epoll_ctl(s->loop->epfd, EPOLL_CTL_MOD, s->fd, &e) < 0)
		return -errno;
	s->events = events;
	source_set_pending(s, false);
	return 0;
}

int loop_add_timer(struct loop *l, struct loop_source **ret, clockid_t clock,
		   uint64_t late_us _unused_, loop_call_t call, void *userdata)
{
	struct loop_source *s;

	if (clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
		return -EOPNOTSUPP;
	s = source_alloc(l, TIMER, userdata);
	if (!s)
		return -ENOMEM;
	s->call = call;
	s->clock = clock;
	*ret = s;
	return 0;
}

int loop_timer_at(struct loop_source *s, uint64_t at_us)
{
	s->at_us = at_us;
	source_set_pending(s, false);
	return loop_source_enable(s, true);
}

int loop_timer_in(struct loop_source *s, uint64_t us)
{
	return loop_timer_at(s, loop_now_us(s->clock) + us);
}

int loop_add_deferred(struct loop *l, struct loop_source **ret, loop_call_t call, void *userdata)
{
	struct loop_source *s = source_alloc(l, DEFERRED, userdata);

	if (!s)
		return -ENOMEM;
	s->call = call;
	*ret = s;
	return 0;
}

static int loop_watch_signal(struct loop *l, int number)
{
	sigaddset(&l->watched, number);
	return signalfd(l->signals, &l->watched, 0) < 0 ? -errno : 0;
}

int loop_add_signal(struct loop *l, int number, loop_call_t call, void *userdata)
{
	struct loop_source *s;
	int r = loop_watch_signal(l, number);

	if (r < 0)
		return r;
	s = source_alloc(l, SIGNAL, userdata);
	if (!s)
		return -ENOMEM;
	s->call = call;
	s->number = number;
	s->enabled = true;
	return 0;
}

int loop_add_child(struct loop *l, struct loop_source **ret, pid_t pid, loop_child_t call,
		   void *userdata)
{
	struct loop_source *s;
	int r = loop_watch_signal(l, SIGCHLD);

	if (r < 0)
		return r;
	s = source_alloc(l, CHILD, userdata);
	if (!s)
		return -ENOMEM;
	s->child = call;
	s->pid = pid;
	s->enabled = true;
	/* The process may have ended already, its signal taken by another loop's signalfd. */
	loop_reap(l);
	*ret = s;
	return 0;
}

void loop_source_set_priority(struct loop_source *s, enum loop_priority priority)
{
	bool pending = s->pending;

	source_set_pending(s, false);
	s->priority = priority;
	source_set_pending(s, pending);
}

static int source_enable_io(struct loop_source *s, bool enable)
{
	if (enable)
		return loop_watch(s->loop, s->fd, s->events, s);
	return epoll_ctl(s->loop->epfd, EPOLL_CTL_DEL, s->fd, NULL) < 0 ? -errno : 0;
}

int loop_source_enable(struct loop_source *s, bool enable)
{
	int r = s->kind == IO && s->enabled != enable ? source_enable_io(s, enable) : 0;

	if (r < 0)
		return r;
	s->enabled = enable;
	source_set_pending(s, enable && (s->pending || s->kind == DEFERRED));
	return 0;
}

struct loop_source *loop_source_free(struct loop_source *s)
{
	if (!s)
		return NULL;
	if (s->kind == IO && s->enabled)
		source_enable_io(s, false);
	source_set_pending(s, false);
	if (s->kind == CHILD && s->pid && !s->killed) {
		kill(s->pid, SIGKILL);
		s->killed = true;
		s->enabled = false;
	} else {
		source_drop(s);
	}
	return NULL;
}
