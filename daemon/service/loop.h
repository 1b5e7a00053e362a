/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's event loop. There are two implementations: sd-event, and plain epoll for machines
 * without libsystemd. A program links one (daemon/meson.build); the service's tests run with both.
 *
 * Sources are served one at a time: the highest priority first, and among equals the one pending
 * longest. The kernel is polled again after each. A callback may free any source, including its
 * own.
 *
 * Free sources before the loop, and io sources before closing their descriptors. Watched signals
 * must be blocked, and SIGCHLD for children.
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
	LOOP_NORMAL, /* default of new sources */
};

typedef void (*loop_io_t)(void *userdata, int fd, uint32_t revents);
typedef void (*loop_call_t)(void *userdata);
typedef void (*loop_child_t)(void *userdata, const siginfo_t *si);

int loop_new(struct loop **ret);
struct loop *loop_free(struct loop *l);
DEFINE_CLEANUP_FUNC(struct loop *, loop_free);

/* Runs until loop_exit(); returns its code, or -errno. */
int loop_run(struct loop *l);
/* Serves one source, waiting for it at most timeout_us. */
int loop_step(struct loop *l, uint64_t timeout_us);
/* code: 0 or -errno */
void loop_exit(struct loop *l, int code);
bool loop_has_ended(const struct loop *l);
/* Sends the service manager its watchdog messages, if it wants any. */
int loop_serve_watchdog(struct loop *l);

/*
 * In a callback: what it is about to do, for the journal, in case it takes 100 ms or more. what: a
 * literal; name: copied; or NULL.
 */
void loop_doing(const char *what, const char *name);

/* fd stays the caller's. events as in epoll(7), level-triggered. Created enabled. */
int loop_add_io(struct loop *l, struct loop_source **ret, int fd, uint32_t events, loop_io_t call,
		void *userdata);
int loop_io_set_events(struct loop_source *s, uint32_t events);

/*
 * Created disabled, with a time in the past. clock: CLOCK_MONOTONIC or CLOCK_BOOTTIME. late_us:
 * permitted delay, so that wake-ups coincide.
 */
int loop_add_timer(struct loop *l, struct loop_source **ret, clockid_t clock, uint64_t late_us,
		   loop_call_t call, void *userdata);
/* Fires once at this time of its clock, at once if it has passed. Enables the timer. */
int loop_timer_at(struct loop_source *s, uint64_t at_us);
/* The same, relative to now. */
int loop_timer_in(struct loop_source *s, uint64_t us);

/* Created disabled; served once each time it is enabled. */
int loop_add_deferred(struct loop *l, struct loop_source **ret, loop_call_t call, void *userdata);

/* Owned by the loop. */
int loop_add_signal(struct loop *l, int number, loop_call_t call, void *userdata);

/*
 * Served once, when the process has ended and is reaped. Freeing it earlier kills the process; the
 * loop reaps it later, since one that waits for a server of FUSE or NFS may not end.
 */
int loop_add_child(struct loop *l, struct loop_source **ret, pid_t pid, loop_child_t call,
		   void *userdata);

void loop_source_set_priority(struct loop_source *s, enum loop_priority priority);
/* Enabling a timer keeps its time. Disabling clears a pending event. */
int loop_source_enable(struct loop_source *s, bool enable);
struct loop_source *loop_source_free(struct loop_source *s);
