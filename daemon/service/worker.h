/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One thread for what the kernel takes its time over: making a tracefs instance
 * and removing it wait for RCU grace periods, tens of milliseconds in which other
 * sessions' rings would go unread. Work is done in the order in which it was
 * submitted, so what is taken down is gone before a successor of its name is made.
 */
#pragma once

#include <sys/queue.h>

#include "base/cleanup.h"
#include "daemon/service/loop.h"

struct work {
	TAILQ_ENTRY(work) list;
	void (*run)(struct work *w); /* in the worker's thread */
	void (*done)(
		struct work *w); /* in the loop's, afterwards; the work is the caller's again */
};

struct worker;

int worker_new(struct worker **ret, struct loop *loop);
/* Finishes what is submitted, and calls done for all of it. */
struct worker *worker_free(struct worker *w);
DEFINE_CLEANUP_FUNC(struct worker *, worker_free);
/* Never fails: where no thread can be had, run is called here and now; done always comes later. */
void worker_submit(struct worker *w, struct work *work);
