/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a stream needs to be read on another machine: tasks, event formats,
 * constants, printk strings, kernel symbols. Written in slices of a
 * millisecond or so while the kernel already records.
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
	char **events; /* "system:event", sorted; owned */
	size_t event_count, next_event;
	bool all_symbols; /* whatever is recorded; else what a mark names, if none of these is */
	struct event_set symbol_events; /* that name symbols; ftrace's own, too, but marks */
	bool some_name_symbols;		/* one of those that were asked for */
	struct seen_events *seen; /* in what was recorded so far; NULL: any may be; borrowed */
	bool want_arguments;	  /* functions' are recorded */
	struct task_scan scan;
	struct task_memory *known; /* of the tasks that it writes, for later scans; or NULL */
	struct kernel_symbols symbols;
	struct identifiers identifiers; /* of the formats written so far */
};

#define NAMES_INIT ((struct names){ .symbols = { .fd = -EBADF }, .scan = TASK_SCAN_INIT })

/*
 * Of these events, those of system ftrace, and those of the task ring.
 * all_symbols: whatever the formats of these events say.
 */
int names_init(struct names *n, const struct capture_env *env, const char *const *events,
	       size_t event_count, bool all_symbols);
void names_deinit(struct names *n);
/*
 * dir: the buffer's, whose options may make its events name more: arguments, stacks. Before the
 * first step. 0 or -ENOMEM.
 */
int names_see_options(struct names *n, int dir);
/* From the start again, for another stream. */
void names_rewind(struct names *n);
/*
 * 1: there is more to do; 0: all is written; or -errno. Turns n->seen off once nothing depends on
 * it any more.
 */
int names_step(struct names *n, struct stream_writer *w);
/*
 * Once all is written: whether an event that names symbols was seen since then. They are written by
 * names_step, and are as of now.
 */
bool names_lack_symbols(struct names *n);
/* The symbols of modules that came after what was written so far. 0 or -errno. */
int names_update(struct names *n, struct stream_writer *w);
/* Whether the event's text names kernel symbols. */
bool format_wants_symbols(const char *text);
