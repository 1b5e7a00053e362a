/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps a tid to a task by time. Tids are reused, so a tid has one or more lives; in each it belongs
 * to one process. A line shows the last name of that life, as the kernel does and viewers expect:
 * one name per thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct task {
	int32_t tid, tgid, ppid; /* tgid 0: unknown */
	uint64_t from_ts;	 /* by the trace clock; 0: started before the recording */
	uint64_t start_ns;	 /* since boot; 0: unknown */
	uint32_t uid;
	bool kthread;
	bool seen;     /* has an event in the trace (set during the export) */
	char comm[64]; /* terminated; any bytes */
	/* For readers of renames: the name before the first rename not yet read; empty: unknown. */
	char comm_before[64];
	uint32_t renames; /* not yet read */
	char *cmdline;	  /* owned; NUL between arguments, or NULL */
	size_t cmdline_len;
};

struct task_table;

int task_table_new(struct task_table **ret);
struct task_table *task_table_free(struct task_table *t);
DEFINE_CLEANUP_FUNC(struct task_table *, task_table_free);

/*
 * Filling the table. For each tid, births and readings must come in order of time. A weak source
 * (the kernel's saved_cmdlines) names only unnamed tasks.
 */
struct task_reading {
	int32_t tid, tgid, ppid;
	uint64_t ts;	   /* time of the reading by the trace clock; 0: unknown */
	uint64_t start_ns; /* since boot; 0: unknown */
	uint64_t start_ts; /* by the trace clock; 0: unknown */
	uint32_t uid;
	bool kthread, weak;
	const char *comm, *cmdline; /* borrowed; any bytes */
	size_t comm_len, cmdline_len;
};
int task_table_read(struct task_table *t, const struct task_reading *r);

struct task_birth {
	int32_t tid, creator;
	uint64_t ts;	   /* by the trace clock */
	uint64_t start_ns; /* since boot; 0: unknown */
	uint64_t clone_flags;
	const char *comm;
	size_t comm_len;
};
int task_table_birth(struct task_table *t, const struct task_birth *b);
/* before NULL: unknown. A reading of procfs does not tell it: its time is that of its begin. */
int task_table_rename(struct task_table *t, int32_t tid, uint64_t ts, const char *before,
		      size_t before_len, const char *comm, size_t len);

/* A task's new name. */
struct task_rename {
	int32_t tid;
	uint64_t ts;
	char comm[64]; /* terminated; any bytes */
};
/*
 * Moves the renames noted since the last call to *ret, which the caller frees; mostly they are in
 * order of time. Returns their number.
 */
size_t task_table_take_renames(struct task_table *t, struct task_rename **ret);

/*
 * The kernel freed the tid's task: it has no event after ts. comm is used if no better name is
 * known; len 0: unknown.
 */
int task_table_death(struct task_table *t, int32_t tid, uint64_t ts, const char *comm, size_t len);
/* A name from an event of the trace. The last such name applies to a task without one. */
int task_table_name(struct task_table *t, int32_t tid, uint64_t ts, const char *comm, size_t len);

/*
 * fill is called once, when task_table_find() first meets an unnamed tid: it may make an expensive
 * search. Lives known by then do not move.
 */
void task_table_set_filler(struct task_table *t, void (*fill)(void *userdata), void *userdata);

/* True if fill may still be called. */
bool task_table_may_fill(const struct task_table *t);
/* True if task_table_find() would call fill for this tid, and so change the table. */
bool task_table_would_fill(const struct task_table *t, int32_t tid, uint64_t ts);

/* The task's end, or the begin of the tid's next life; not before from_ts. 0: none is known. */
uint64_t task_table_gone(const struct task *task);
/* CPUs' clocks may differ, and an event may come after younger ones. */
#define TASK_LINGER_NS UINT64_C(1000000000)
/* True if the task ended so long before now that no event of it can come. */
bool task_table_is_gone(const struct task *task, uint64_t now);
/* Frees such tasks, but never the one discovered last; and all renames that nobody took. */
void task_table_forget(struct task_table *t, uint64_t now);

/* The task that tid was at ts. NULL: unknown. It stays in place until forgotten. */
struct task *task_table_find(struct task_table *t, int32_t tid, uint64_t ts);
/*
 * Notes that the task has an event in the trace. Any thread may call it; read after they finished.
 */
static inline void task_see(struct task *task)
{
	__atomic_store_n(&task->seen, true, __ATOMIC_RELAXED);
}
/*
 * The process that is the task's parent, by what is known now: ppid may be a thread whose process
 * was learned after the task's birth.
 */
int32_t task_table_parent(const struct task_table *t, const struct task *task);
/* True if no earlier life of the tid is known: events before its from_ts belong to it too. */
bool task_is_oldest(const struct task *task);
/* Start of the tid's next life; UINT64_MAX: none. */
uint64_t task_table_until(const struct task *task);
/* Clears `seen` of all lives, for a new output file. */
void task_table_forget_seen(struct task_table *t);
/* The life discovered after this one, or the first if NULL. NULL: none yet. */
struct task *task_table_next(const struct task_table *t, const struct task *after);
/* All lives, sorted by tid and from_ts. NULL: out of memory. */
struct task *const *task_table_all(struct task_table *t, size_t *ret_count);
