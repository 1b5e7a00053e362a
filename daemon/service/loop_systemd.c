/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loop on sd-event. */
#include "daemon/service/loop.h"

#include <systemd/sd-event.h>

#include "daemon/service/loop_late.h"

struct loop {
	sd_event *event;
};

struct loop_source {
	sd_event_source *source;
	union {
		loop_io_t io;
		loop_call_t call;
		loop_child_t child;
	};
	void *userdata;
	pid_t pid;   /* of a child that has not been reaped; or 0 */
	int enabled; /* sd-event's state for "enabled", which depends on the kind */
};

int loop_new(struct loop **ret)
{
	_cleanup_(loop_freep) struct loop *l = calloc(1, sizeof(*l));
	int r = l ? sd_event_new(&l->event) : -ENOMEM;

	if (r < 0)
		return r;
	*ret = TAKE_PTR(l);
	return 0;
}

struct loop *loop_free(struct loop *l)
{
	if (!l)
		return NULL;
	sd_event_unref(l->event);
	free(l);
	return NULL;
}

int loop_run(struct loop *l)
{
	return sd_event_loop(l->event);
}

int loop_step(struct loop *l, uint64_t timeout_us)
{
	int r = sd_event_run(l->event, timeout_us);

	return MIN(r, 0);
}

void loop_exit(struct loop *l, int code)
{
	sd_event_exit(l->event, code);
}

bool loop_has_ended(const struct loop *l)
{
	return sd_event_get_state(l->event) == SD_EVENT_FINISHED;
}

int loop_serve_watchdog(struct loop *l)
{
	int r = sd_event_set_watchdog(l->event, true);

	return MIN(r, 0);
}

static struct loop_source *systemd_source_new(int enabled, void *userdata)
{
	struct loop_source *s = calloc(1, sizeof(*s));

	if (s) {
		s->enabled = enabled;
		s->userdata = userdata;
	}
	return s;
}

/* Returns the source that sd-event made, or frees it and returns the error. */
static int systemd_source_finish(struct loop_source **ret, struct loop_source *s, int r)
{
	if (r < 0) {
		loop_source_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

static int systemd_on_io(sd_event_source *source _unused_, int fd, uint32_t revents, void *userdata)
{
	struct loop_source *s = userdata;
	uint64_t began = loop_late_begin();

	s->io(s->userdata, fd, revents);
	loop_late_end(began);
	return 0;
}

int loop_add_io(struct loop *l, struct loop_source **ret, int fd, uint32_t events, loop_io_t call,
		void *userdata)
{
	struct loop_source *s = systemd_source_new(SD_EVENT_ON, userdata);

	if (!s)
		return -ENOMEM;
	s->io = call;
	return systemd_source_finish(
		ret, s, sd_event_add_io(l->event, &s->source, fd, events, systemd_on_io, s));
}

int loop_io_set_events(struct loop_source *s, uint32_t events)
{
	return sd_event_source_set_io_events(s->source, events);
}

static int systemd_on_time(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
	struct loop_source *s = userdata;
	uint64_t began = loop_late_begin();

	s->call(s->userdata);
	loop_late_end(began);
	return 0;
}

int loop_add_timer(struct loop *l, struct loop_source **ret, clockid_t clock, uint64_t late_us,
		   loop_call_t call, void *userdata)
{
	struct loop_source *s = systemd_source_new(SD_EVENT_ONESHOT, userdata);
	int r;

	if (!s)
		return -ENOMEM;
	s->call = call;
	/* For sd-event an accuracy of 0 means its default, a quarter of a second. */
	r = sd_event_add_time(l->event, &s->source, clock, 0, MAX(late_us, UINT64_C(1)),
			      systemd_on_time, s);
	if (r >= 0)
		r = loop_source_enable(s, false);
	return systemd_source_finish(ret, s, r);
}

int loop_timer_at(struct loop_source *s, uint64_t at_us)
{
	int r = sd_event_source_set_time(s->source, at_us);

	return r < 0 ? r : loop_source_enable(s, true);
}

int loop_timer_in(struct loop_source *s, uint64_t us)
{
	int r = sd_event_source_set_time_relative(s->source, us);

	return r < 0 ? r : loop_source_enable(s, true);
}

static int systemd_on_deferred(sd_event_source *source _unused_, void *userdata)
{
	struct loop_source *s = userdata;
	uint64_t began = loop_late_begin();

	s->call(s->userdata);
	loop_late_end(began);
	return 0;
}

int loop_add_deferred(struct loop *l, struct loop_source **ret, loop_call_t call, void *userdata)
{
	struct loop_source *s = systemd_source_new(SD_EVENT_ONESHOT, userdata);
	int r;

	if (!s)
		return -ENOMEM;
	s->call = call;
	r = sd_event_add_defer(l->event, &s->source, systemd_on_deferred, s);
	if (r >= 0)
		r = loop_source_enable(s, false);
	return systemd_source_finish(ret, s, r);
}

static int systemd_on_signal(sd_event_source *source _unused_,
			     const struct signalfd_siginfo *si _unused_, void *userdata)
{
	struct loop_source *s = userdata;
	uint64_t began = loop_late_begin();

	s->call(s->userdata);
	loop_late_end(began);
	return 0;
}

static void systemd_source_destroy(void *userdata)
{
	free(userdata);
}

int loop_add_signal(struct loop *l, int number, loop_call_t call, void *userdata)
{
	struct loop_source *s = systemd_source_new(SD_EVENT_ON, userdata);
	int r;

	if (!s)
		return -ENOMEM;
	s->call = call;
	r = sd_event_add_signal(l->event, &s->source, number, systemd_on_signal, s);
	if (r < 0) {
		loop_source_free(s);
		return r;
	}
	sd_event_source_set_destroy_callback(s->source, systemd_source_destroy);
	r = sd_event_source_set_floating(s->source, true);
	sd_event_source_unref(s->source);
	return MIN(r, 0);
}

static int systemd_on_child(sd_event_source *source _unused_, const siginfo_t *si, void *userdata)
{
	struct loop_source *s = userdata;
	uint64_t began = loop_late_begin();

	s->pid = 0;
	s->child(s->userdata, si);
	loop_late_end(began);
	return 0;
}

int loop_add_child(struct loop *l, struct loop_source **ret, pid_t pid, loop_child_t call,
		   void *userdata)
{
	struct loop_source *s = systemd_source_new(SD_EVENT_ONESHOT, userdata);
	int r;

	if (!s)
		return -ENOMEM;
	s->child = call;
	r = sd_event_add_child(l->event, &s->source, pid, WEXITED, systemd_on_child, s);
	s->pid = r < 0 ? 0 : pid;
	return systemd_source_finish(ret, s, r);
}

void loop_source_set_priority(struct loop_source *s, enum loop_priority priority)
{
	sd_event_source_set_priority(s->source, priority == LOOP_IMPORTANT
							? SD_EVENT_PRIORITY_IMPORTANT
							: SD_EVENT_PRIORITY_NORMAL);
}

int loop_source_enable(struct loop_source *s, bool enable)
{
	return sd_event_source_set_enabled(s->source, enable ? s->enabled : SD_EVENT_OFF);
}

static int systemd_on_killed(sd_event_source *source, const siginfo_t *si _unused_,
			     void *userdata _unused_)
{
	/* Drops the loop's reference. sd-event reaps the child after this. */
	sd_event_source_set_floating(source, false);
	return 0;
}

/* sd-event would wait for the child when it frees a source that owns one. */
static void systemd_kill_child(struct loop_source *s)
{
	sd_event *event = sd_event_source_get_event(s->source);
	pid_t pid = s->pid;

	s->source = sd_event_source_disable_unref(s->source);
	kill(pid, SIGKILL);
	if (sd_event_add_child(event, &s->source, pid, WEXITED, systemd_on_killed, NULL) < 0)
		return;
	sd_event_source_set_floating(s->source, true);
	s->source = sd_event_source_unref(s->source);
}

struct loop_source *loop_source_free(struct loop_source *s)
{
	if (!s)
		return NULL;
	if (s->pid)
		systemd_kill_child(s);
	sd_event_source_disable_unref(s->source);
	free(s);
	return NULL;
}
