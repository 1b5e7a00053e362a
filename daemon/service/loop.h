/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's event loop. Two of them are behind this: sd-event, and epoll
 * alone for machines without libsystemd. A program links one (daemon/meson.build),
 * and the tests of the service run with both.
 *
 * One source is served at a time: of those that are pending the one of the
 * highest priority, and of equals the one that has waited longest. In between
 * the kernel is asked again. A callback may free any source, its own too.
 *
 * Sources are freed before the loop, io sources before their descriptors are
 * closed. Signals that are watched must be blocked, and SIGCHLD for children.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/cleanup.h"

struct loop;
struct loop_source;

enum loop_priority {
	LOOP_IMPORTANT,
	LOOP_NORMAL, /* how sources are made */
};

typedef void (*loop_io_t)(void *userdata, int fd, uint32_t revents);
typedef void (*loop_call_t)(void *userdata);
typedef void (*loop_child_t)(void *userdata, const siginfo_t *si);

int loop_new(struct loop **ret);
struct loop *loop_free(struct loop *l);
DEFINE_CLEANUP_FUNC(struct loop *, loop_free);

/* Until loop_exit(); returns its code, or -errno. */
int loop_run(struct loop *l);
/* Serves one source, waiting for it at most so long. */
int loop_step(struct loop *l, uint64_t timeout_us);
/* code: 0 or -errno */
void loop_exit(struct loop *l, int code);
bool loop_has_ended(const struct loop *l);
/* Tells the service manager that the loop turns, if it wants to know. */
int loop_serve_watchdog(struct loop *l);

/* The descriptor stays the caller's. events as for epoll(7), level-triggered. Made enabled. */
int loop_add_io(struct loop *l, struct loop_source **ret, int fd, uint32_t events, loop_io_t call,
		void *userdata);
int loop_io_set_events(struct loop_source *s, uint32_t events);

/*
 * Made disabled, its time long past. clock: CLOCK_MONOTONIC or CLOCK_BOOTTIME. late_us: how much
 * later than its time it may be served, so that wakeups fall together.
 */
int loop_add_timer(struct loop *l, struct loop_source **ret, clockid_t clock, uint64_t late_us,
		   loop_call_t call, void *userdata);
/* Once, at this time of its clock; a time that has passed means now. Enables it. */
int loop_timer_at(struct loop_source *s, uint64_t at_us);
/* The same, counted from now. */
int loop_timer_in(struct loop_source *s, uint64_t us);

/* Made disabled; served once, each time it is enabled. */
int loop_add_deferred(struct loop *l, struct loop_source **ret, loop_call_t call, void *userdata);

/* Belongs to the loop. */
int loop_add_signal(struct loop *l, int number, loop_call_t call, void *userdata);

/* Served once, when the process has ended and is reaped. Freed before, it kills it and reaps it. */
int loop_add_child(struct loop *l, struct loop_source **ret, pid_t pid, loop_child_t call,
		   void *userdata);

void loop_source_set_priority(struct loop_source *s, enum loop_priority priority);
/* A timer that is enabled again keeps its time. What was pending is no more when disabled. */
int loop_source_enable(struct loop_source *s, bool enable);
struct loop_source *loop_source_free(struct loop_source *s);
