/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tasks that were looked up before: to look for one of them once more does not change the
 * table of tasks, under the eyes of threads that read it. For one thread at a time.
 */
#pragma once

#include <stdbool.h>

#include "trace/task_table.h"

#define KNOWN_TASKS 256

/* A task has one name from from_ts on, for a span of so long; 0: this is none's. */
struct known_task {
	uint64_t from_ts, span;
	int32_t pid;
};

struct known_tasks {
	struct task_table *table; /* borrowed */
	bool searches;		  /* it may still look for names */
	struct known_task known[KNOWN_TASKS];
};

/* Forgets all. */
void known_tasks_init(struct known_tasks *k, struct task_table *table);
/* Looks it up; whoever else reads the table has to be kept from it where
 * task_table_would_fill(). */
void known_tasks_add(struct known_tasks *k, int32_t pid, uint64_t ts);

/* To look for it changes nothing. Otherwise known_tasks_add() comes first. */
static inline bool known_tasks_has(const struct known_tasks *k, int32_t pid, uint64_t ts)
{
	const struct known_task *t = &k->known[(uint32_t)pid % KNOWN_TASKS];

	/* Idle is no task, and the kernel's mark of "none" is negative. */
	return !k->searches || (t->pid == pid ? ts - t->from_ts < t->span : pid <= 0);
}
