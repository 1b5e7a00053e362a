/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Triggers: `tracectl start --ring --on CONDITION`. A second session, which is streamed, has the
 * events of the conditions, or those of the recorder if the conditions are about losses alone; the
 * daemon's exporter evaluates them (report/watch.h) and writes what is met into a pipe. A process
 * of tracectl with its caller's rights reads that, marks the flight recorder, has snapshots of it
 * written into a folder, and starts the hook. It ends with either session.
 */
#pragma once

#include <signal.h>

#include "cli.h"
#include "link.h"
#include "report/watch_condition.h"

struct triggers {
	const struct options *o;
	struct watch_condition conditions[WATCH_CONDITIONS_MAX];
	size_t count;
	bool has_lost;
	const Traced__Control__Start *recorder; /* borrowed; for triggers_begin() */
	Traced__Control__Output output;		/* of snapshots: for the daemon, to check it now */
	const char *ending;			/* of their names: ".json" */
	int folder_fd;				/* owned */
	char *folder; /* owned; absolute path of it, for messages and hooks */
	char *hook;   /* owned; path of a program, or NULL */
	/* For the second session; owned arrays of borrowed strings. */
	Traced__Control__EventSpec specs[WATCH_CONDITIONS_MAX * 6];
	Traced__Control__EventSpec *spec_list[WATCH_CONDITIONS_MAX * 6];
	size_t spec_count;
	char *events[WATCH_CONDITIONS_MAX * 6]; /* owned */
};

/* Checks the options. -EINVAL: a wrong command line. */
int triggers_init(struct triggers *ret, const struct options *o, struct error *err);
void triggers_deinit(struct triggers *t);
#define TRIGGERS_INIT ((struct triggers){ .folder_fd = -EBADF })
#define _cleanup_triggers_ _cleanup_(triggers_deinit)

/* Finds the hook, before anything records. */
int triggers_prepare(struct triggers *t, struct link *link, struct error *err);
/*
 * Starts a session of that name with the conditions' events. Returns a descriptor of the pipe that
 * its exporter writes into (firings.h). The reply *ret_id comes when the session ends.
 */
int triggers_watch(struct triggers *t, struct link *link, const char *name, uint64_t *ret_id,
		   struct error *err);
/*
 * Starts the second session, and the process that follows it. The caller has blocked the signals
 * that end a program (output_signals_block()); `signals` is the mask before. -ECANCELED: one came.
 */
int triggers_begin(struct triggers *t, struct link *link, const char *session,
		   const sigset_t *signals, struct error *err);
