/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tasks that were looked up before. Looking one of them up again does not change the task table,
 * which other threads may be reading. One thread at a time uses this struct.
 */
#pragma once

#include <stdbool.h>

#include "trace/task_table.h"

#define KNOWN_TASKS 256

/* The task has one name from from_ts on, for span ns. span 0: the entry is unused. */
struct known_task {
	uint64_t from_ts, span;
	int32_t pid;
};

struct known_tasks {
	struct task_table *table; /* borrowed */
	bool searches;		  /* a look-up may still search for names */
	struct known_task known[KNOWN_TASKS];
};

/* Forgets all. */
void known_tasks_init(struct known_tasks *k, struct task_table *table);
/* Looks the task up. If task_table_would_fill(), no other thread may read the table meanwhile. */
void known_tasks_add(struct known_tasks *k, int32_t pid, uint64_t ts);

/* True if a look-up changes nothing. Otherwise call known_tasks_add() first. */
static inline bool known_tasks_has(const struct known_tasks *k, int32_t pid, uint64_t ts)
{
	const struct known_task *t = &k->known[(uint32_t)pid % KNOWN_TASKS];

	/* Idle (0) is no task, and the kernel uses negative pids for "none". */
	return !k->searches || (t->pid == pid ? ts - t->from_ts < t->span : pid <= 0);
}
