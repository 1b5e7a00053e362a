/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes what a reader on another machine needs: tasks, event formats, constants, printk strings,
 * kernel symbols. Works in slices of about a millisecond, so the recording's rings do not wait.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/names/identifiers.h"
#include "daemon/capture/names/kernel_symbols.h"
#include "daemon/capture/names/seen_events.h"
#include "daemon/capture/names/tasks.h"
#include "stream/writer.h"

enum names_stage {
	NAMES_TASKS,
	NAMES_FORMATS,
	NAMES_ENUMS,
	NAMES_ARGUMENTS,
	NAMES_PRINTK,
	NAMES_KALLSYMS,
	NAMES_DONE,
};

struct names {
	const struct capture_env *env;
	enum names_stage stage;
	bool unwanted; /* no events are recorded: nothing is written */
	char **events; /* "system:event", sorted; owned */
	size_t event_count, next_event;
	bool all_symbols; /* write all symbols whatever is recorded; otherwise only the marks'
			     symbols, if no event names others */
	struct event_set symbol_events; /* events that name symbols, including those of system
					   ftrace except marks */
	bool some_name_symbols;		/* one of the requested events names symbols */
	struct seen_events *seen;	/* events recorded so far; NULL: assume any; borrowed */
	bool want_arguments;		/* function events are recorded */
	bool symbols_wait;		/* the caller asks for symbols later, by clearing this */
	struct task_scan scan;
	struct task_memory *known; /* remembers the tasks written, for later scans; or NULL */
	struct kernel_symbols symbols;
	struct identifiers identifiers; /* from the formats written so far */
};

#define NAMES_INIT ((struct names){ .symbols = { .fd = -EBADF }, .scan = TASK_SCAN_INIT })

/*
 * Covers these events, those of system ftrace, and those of the tasks' ring. all_symbols: write
 * symbols whatever these events' formats say.
 */
int names_init(struct names *n, const struct capture_env *env, const char *const *events,
	       size_t event_count, bool all_symbols);
void names_deinit(struct names *n);
/*
 * Looks at trace options that make events name symbols: arguments, stacks. dir: the buffer's. Call
 * before the first step. 0 or -ENOMEM.
 */
int names_see_options(struct names *n, int dir);
/* Starts over, for another stream. */
void names_rewind(struct names *n);
/*
 * Returns 1: more to do; 0: all is written that need not wait; or -errno. Turns n->seen off once
 * its result is no longer needed.
 */
int names_step(struct names *n, struct stream_writer *w);
/* The same for the events' formats alone, which names_step() then leaves out. */
int names_step_formats(struct names *n, struct stream_writer *w);
/*
 * After names_step returned 0: true if symbols need not wait any longer, or an event that needs
 * them has been seen since. names_step then writes them, as of now.
 */
bool names_lack_symbols(struct names *n);
/* Writes symbols of modules loaded since the last ones were written. 0 or -errno. */
int names_update(struct names *n, struct stream_writer *w);
