/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Slices of applications that are open, per thread, and what the scheduler did to these threads. */
#pragma once

#include "report/scheduler.h"

#define SLICES_MAX (1U << 20) /* room for open slices over all threads */
#define SLICE_DEPTH_MAX 256

/* A row of the report: all slices of a name. */
struct slice_row {
	char *name; /* owned; NULL: not set yet */
	uint32_t len;
	bool is_async, is_rest;
	struct histogram time;
	uint64_t self, running, runnable, blocked;
	uint64_t max_at, cut, open;
};

/* Times of a thread so far. Only their differences mean something. */
struct slice_times {
	uint64_t ran, waited;
};

struct slice {
	struct slice_row *row;
	uint64_t from, end; /* end 0: an event of its own ends it */
	uint64_t within;    /* time of slices within this one */
	uint64_t mark, cuts;
	bool is_late; /* what the scheduler did at its begin is forgotten */
	struct slice_times at_begin;
};

/* A thread's state from ts on. */
struct slice_change {
	uint64_t ts;
	struct slice_times times; /* until ts */
	enum sched_state state;
};

/* A slice that ended. */
struct slice_done {
	uint64_t from, ns;
};

/* A mark with both times may come when it ends: after the slices within it, and after switches. */
#define SLICE_CHANGES_MAX 4096U
#define CHANGES_MAX (1U << 20) /* over all threads: 32 MiB */
#define SLICE_DONE_MAX 4096U
#define DONE_MAX (1U << 20) /* over all threads: 16 MiB */

struct slice_thread {
	int32_t tid;
	struct slice *slices; /* owned; `depth` are open */
	uint32_t depth, cap;
	struct slice_change last;     /* of its last span; all zero: none, the thread ran */
	struct slice_change *changes; /* owned; a ring of those before, change_next the oldest */
	uint32_t change_count, change_next, change_cap;
	bool forgot; /* there were more changes */
	/* Owned: slices that ended last, without those within them, by begin. */
	struct slice_done *done;
	uint32_t done_count, done_cap;
	uint64_t done_from; /* slices that began up to here are forgotten; 0: none */
	uint64_t cuts;	    /* spans that were cut */
	bool runs;	    /* it made a mark, and its switch in is lost; until its switch out */
	bool unsure;	    /* the span before the wait that goes on is unknown: it may run */
};

struct slices {
	struct report_env *env;
	struct rows threads;		       /* of struct slice_thread, by tid */
	uint32_t room, change_room, done_room; /* that all threads have reserved */
	uint64_t losses, clean_from;	       /* no events are missing since then */
	bool has_sched;
};

void slices_init(struct slices *s, struct report_env *env);
void slices_deinit(struct slices *s);
/* Listens to the scheduler, if there are events of it. Returns 0 or -errno. */
int slices_listen(struct slices *s, const struct sched_listener *listener);

/* *ret NULL: there are too many threads. Ends slices whose end is known and not after ts. */
int slices_thread(struct slices *s, int32_t tid, uint64_t ts, struct slice_thread **ret);
/* end 0: unknown. A slice too many is counted as cut. */
void slices_begin(struct slices *s, struct slice_thread *t, struct slice_row *row, uint64_t ts,
		  uint64_t end);
/* The innermost slice without a known end ends. Returns 0, -ENOENT: there is none; or -ENOMEM. */
int slices_end(struct slices *s, struct slice_thread *t, uint64_t ts);
/* A slice's time. cut: lost events may have cut it. */
int slice_row_add(struct slice_row *row, uint64_t from, uint64_t to, bool cut);
/* After the last event and the last mark, at ts: the other slices are open. */
int slices_close(struct slices *s, uint64_t ts);

/* For struct sched_listener. */
int slices_ran(struct slices *s, const struct sched_span *span);
int slices_waited(struct slices *s, const struct sched_span *span);
int slices_slept(struct slices *s, const struct sched_span *span);
