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
};

/* "thread", "comm", "process" or "cpu"; NULL: by thread. */
enum grouping grouping_find(const char *by);
/* The key of a task's row; group_key_join() makes one of two. */
struct row_key group_key(enum grouping by, const struct task *task, int32_t tid, uint32_t cpu);
struct row_key group_key_join(struct row_key a, struct row_key b);
struct row_key group_key_of_name(struct text name);
/* Makes a block of that key the task's, if it is new. */
void group_begin(const struct report_env *env, const struct rows *rows, struct group *g,
		 enum grouping by, const struct task *task, int32_t tid, uint32_t cpu);
/* The row of a task's events on a CPU. task NULL: unknown. NULL: out of memory. */
void *group_get(const struct report_env *env, struct rows *rows, enum grouping by,
		const struct task *task, int32_t tid, uint32_t cpu);

/* A table with columns for the group, then these. */
int group_table(struct table **ret, const char *name, enum grouping by, const struct column *values,
		size_t count, const char *sort);
/* The group's columns of a row. */
void group_put(struct table *t, enum grouping by, const struct group *group);
