/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One thread for slow kernel calls: creating and removing a tracefs instance waits for RCU grace
 * periods. For tens of milliseconds other sessions' rings would stay unread. Work runs in order of
 * submission, so an instance is removed before a successor of the same name is made.
 */
#pragma once

#include <sys/queue.h>

#include "base/cleanup.h"
#include "daemon/service/loop.h"

struct work {
	TAILQ_ENTRY(work) list;
	void (*run)(struct work *w);  /* in the worker's thread */
	void (*done)(struct work *w); /* in the loop's thread, afterwards; the work belongs to the
					 caller again */
};

struct worker;

int worker_new(struct worker **ret, struct loop *loop);
/* Finishes all submitted work and calls done for it. */
struct worker *worker_free(struct worker *w);
DEFINE_CLEANUP_FUNC(struct worker *, worker_free);
/*
 * Never fails. If no thread can be created, calls run at once; done always follows later, from the
 * loop.
 */
void worker_submit(struct worker *w, struct work *work);
