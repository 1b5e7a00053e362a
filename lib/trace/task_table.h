/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who a tid was, when. A tid has one or more lives (tids are used again); in
 * each it has one process and a last name. The name on a line is the last name
 * of that life, as the kernel prints it and as viewers want it: one thread, one name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct task {
	int32_t tid, tgid, ppid; /* tgid 0: unknown */
	uint64_t from_ts;	 /* of the trace clock; 0: was there before the recording */
	uint64_t start_ns;	 /* since boot; 0: unknown */
	uint32_t uid;
	bool kthread;
	bool seen;     /* has an event in the trace (set while exporting) */
	char comm[64]; /* terminated; any bytes */
	char *cmdline; /* owned; NUL between arguments, or NULL */
	size_t cmdline_len;
};

struct task_table;

int task_table_new(struct task_table **ret);
struct task_table *task_table_free(struct task_table *t);
DEFINE_CLEANUP_FUNC(struct task_table *, task_table_free);

/*
 * Filling it. Of one tid, births and readings must come in the order of time. A
 * weak source (the kernel's saved_cmdlines) names only what has no name.
 */
struct task_reading {
	int32_t tid, tgid, ppid;
	uint64_t ts;	   /* of the trace clock, when it was read; 0: unknown */
	uint64_t start_ns; /* since boot; 0: unknown */
	uint64_t start_ts; /* the same by the trace clock; 0: unknown */
	uint32_t uid;
	bool kthread, weak;
	const char *comm, *cmdline; /* borrowed; any bytes */
	size_t comm_len, cmdline_len;
};
int task_table_read(struct task_table *t, const struct task_reading *r);

struct task_birth {
	int32_t tid, creator;
	uint64_t ts;	   /* of the trace clock */
	uint64_t start_ns; /* since boot; 0: unknown */
	uint64_t clone_flags;
	const char *comm;
	size_t comm_len;
};
int task_table_birth(struct task_table *t, const struct task_birth *b);
int task_table_rename(struct task_table *t, int32_t tid, uint64_t ts, const char *comm, size_t len);
/*
 * The kernel has freed that tid's task: it has no event later than ts. comm names it if nothing
 * better does; len 0: not told.
 */
int task_table_death(struct task_table *t, int32_t tid, uint64_t ts, const char *comm, size_t len);
/* From an event of the trace that tells a tid's name: the last one names who has none. */
int task_table_name(struct task_table *t, int32_t tid, uint64_t ts, const char *comm, size_t len);

/*
 * fill is called once, when task_table_find first meets a tid without a name:
 * it may search where searching is dear. The lives known by then stay in place.
 */
void task_table_set_filler(struct task_table *t, void (*fill)(void *userdata), void *userdata);

/* Whether it is still to be called at all. */
bool task_table_may_fill(const struct task_table *t);
/* Whether task_table_find would call it for this one: it changes the table, find alone does not. */
bool task_table_would_fill(const struct task_table *t, int32_t tid, uint64_t ts);

/* CPUs' clocks may differ, and a late event may come behind younger ones. */
#define TASK_LINGER_NS UINT64_C(1000000000)
/* Its life was over so long before now that nothing of it comes any more. */
bool task_table_is_gone(const struct task *task, uint64_t now);
/* Frees those that are gone, but never the one that became known last. */
void task_table_forget(struct task_table *t, uint64_t now);

/* The task that tid was at ts; NULL: nobody told. Stays in place until it is
 * forgotten. */
struct task *task_table_find(struct task_table *t, int32_t tid, uint64_t ts);
/* Has an event in the trace. By any of several threads; read when they are done. */
static inline void task_see(struct task *task)
{
	__atomic_store_n(&task->seen, true, __ATOMIC_RELAXED);
}
/* No earlier life of that tid is known: what came before its from_ts is its own, too. */
bool task_is_oldest(const struct task *task);
/* When the next life of that tid begins; UINT64_MAX: there is none. */
uint64_t task_table_until(const struct task_table *t, const struct task *task);
/* No life has an event in the file, so far. */
void task_table_forget_seen(struct task_table *t);
/* The life that became known after this one; NULL: the first. NULL if there is none yet. */
struct task *task_table_next(const struct task_table *t, const struct task *after);
/* All lives, ordered by tid and from_ts. */
/* NULL: no memory. */
struct task *const *task_table_all(struct task_table *t, size_t *ret_count);
