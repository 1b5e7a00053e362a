/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A row stands for a thread, all threads of a name, a process, or a CPU. */
#pragma once

#include "report/kind.h"

enum grouping {
	GROUP_THREAD,
	GROUP_COMM,
	GROUP_PROCESS,
	GROUP_CPU,
};

/* Embedded as the first member of a row. */
struct group {
	const struct task *task; /* NULL: unknown, or the idle task */
	int32_t tid;		 /* by process: its pid */
	uint32_t cpu;
	bool used, is_rest;
	bool is_folded; /* stands for all of its name that have no row of their own */
};

/* "thread", "comm", "process" or "cpu"; NULL: by thread. */
enum grouping grouping_find(const char *by);
/* The key of a task's row. */
struct row_key group_key(enum grouping by, const struct task *task, int32_t tid, uint32_t cpu);
/*
 * Once a report has this many rows, threads and processes that ended in the recording share a row
 * for each name, so that the memory is bounded. At the second bound the others do, too.
 */
#define GROUP_ENDED_MAX 8192U
#define GROUP_ALL_MAX 16384U

/*
 * The row of a task's events on a CPU. task NULL: unknown. more: NULL, or what the row is for in
 * addition. NULL: out of memory. The row's group is new unless it is `used`: then group_begin().
 */
void *group_find(struct rows *rows, enum grouping by, const struct task *task, int32_t tid,
		 uint32_t cpu, const struct row_key *more);
/* Makes a new row the task's, as group_find() returned it. */
void group_begin(const struct report_env *env, const struct rows *rows, struct group *g,
		 enum grouping by, const struct task *task, int32_t tid, uint32_t cpu);
/* Both, for rows that are for tasks alone. */
void *group_get(const struct report_env *env, struct rows *rows, enum grouping by,
		const struct task *task, int32_t tid, uint32_t cpu);

/* A table with columns for the group, then these. */
int group_table(struct table **ret, const char *name, enum grouping by, const struct column *values,
		size_t count, const char *sort);
/* Says that rows were folded, if they were. */
void group_note(struct table *t, enum grouping by, const struct rows *rows);
/* The group's columns of a row. */
void group_put(struct table *t, enum grouping by, const struct group *group);
