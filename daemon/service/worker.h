/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread for what must not delay the loop: slow kernel calls, the reading of rings. It runs works
 * and, between them, its duty.
 *
 * The daemon has one worker for tracefs instances, because the kernel waits for RCU grace periods
 * while it makes and removes them, and one for each recording.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "daemon/service/loop.h"

struct work {
	TAILQ_ENTRY(work) list;
	uid_t account; /* for whom (accounts.h): users take turns, each one's works stay in order */
	/* The worker's: how long it has run and waited, and since when it waits (CLOCK_MONOTONIC).
	 */
	uint64_t ns, waited_ns, at_ns;
	/* In the worker's thread. True: there is more, for a later call. Others come in between. */
	bool (*run)(struct work *w);
	void (*done)(struct work *w); /* in the loop's thread, afterwards; the work belongs to the
					 caller again */
};

struct worker;

struct duty {
	int fd;		   /* run when it is readable */
	uint64_t first_ns; /* when to run first at the latest: CLOCK_BOOTTIME */
	/* In the worker's thread. Returns when to run again at the latest: CLOCK_BOOTTIME, ns. */
	uint64_t (*run)(struct worker *w, void *userdata);
	void (*told)(void *userdata); /* in the loop's thread, after worker_tell() */
	void *userdata;
};

/* duty NULL: none, and the thread starts with the first work. */
int worker_new(struct worker **ret, struct loop *loop, const struct duty *duty);
/*
 * Each user's works run in order of submission. Never fails: if no thread can be created, calls run
 * at once. done always follows later, from the loop.
 */
void worker_submit(struct worker *w, struct work *work);
/* Suspends the duty, or resumes it at once. A run that has begun still ends. */
void worker_pause(struct worker *w, bool paused);
/* Runs the duty at once, unless it is suspended. */
void worker_wake(struct worker *w);
/* From the duty: calls `told` from the loop. */
void worker_tell(struct worker *w);
/*
 * The thread ends after all submitted work. The duty runs no more, but a run may not be over.
 * ended: NULL, or called from the loop when the thread is about to end; all works are done then.
 */
void worker_stop(struct worker *w, void (*ended)(void *userdata), void *userdata);
/* Waits for the end of a stopped worker's thread; in any thread. */
void worker_join(struct worker *w);
/* Stops and joins it, and calls done for all works. */
struct worker *worker_free(struct worker *w);
DEFINE_CLEANUP_FUNC(struct worker *, worker_free);
