/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides which tasks to write when: a file's head has the living ones, later ones follow when they
 * are born. Dead tasks are in no later head, so heads don't grow with the recording.
 */
#pragma once

#include "base/table.h"
#include "trace/task_table.h"

/* The time of a task_newtask event of the trace: see pf_tasks_written_at(). */
struct pf_birth {
	int32_t tid;
	uint64_t ts;
	uint64_t next; /* set by pf_tasks_see_births(): number of the tid's next birth, if any */
};

/* A tid's births, by their numbers. */
struct pf_tid_births {
	bool used;
	int32_t tid;
	uint64_t first, last;
};
DECLARE_TABLE(pf_tid_slots, struct pf_tid_births);

/*
 * A birth has two times: the recorder's own ring and the trace's date it one after the other. This
 * is more than lies between them.
 */
#define PF_BIRTH_NS UINT64_C(10000000)

struct pf_tasks {
	struct task_table *table; /* borrowed; has all lives */
	struct task *known;	  /* last task examined, in the order of discovery */
	struct task **there;	  /* written, and not known to be dead */
	size_t there_count, there_cap;
	struct task **coming; /* to be written, sorted by birth */
	size_t coming_next, coming_count, coming_cap;
	struct task_rename *renames; /* to be written, sorted by time */
	size_t rename_next, rename_count, rename_cap;
	struct pf_birth *births; /* that the trace has, by time */
	size_t birth_next, birth_count, birth_cap;
	uint64_t births_gone; /* number of births[0] */
	struct pf_tid_slots tids;
};

void pf_tasks_deinit(struct pf_tasks *t);
/* Looks for newly known lives and renames. 0 or -ENOMEM. */
int pf_tasks_learn(struct pf_tasks *t);
/* Takes births of the trace's events, in order of time. 0 or -ENOMEM. */
int pf_tasks_see_births(struct pf_tasks *t, const struct pf_birth *births, size_t count);
/*
 * The time at which to write the task that pf_tasks_next() returned: if the trace has its birth,
 * right after it. Readers take that event for the begin of another thread of this tid.
 */
uint64_t pf_tasks_written_at(struct pf_tasks *t, const struct task *task);
/* The next unwritten task born until ts, which then counts as written; NULL: none. */
struct task *pf_tasks_next(struct pf_tasks *t, uint64_t ts);
/* The next unwritten rename until ts, and its task, now of that name; NULL: none. */
const struct task *pf_tasks_next_rename(struct pf_tasks *t, uint64_t ts, uint64_t *ret_ts);
/* The task's name as far as the renames are written. Empty: unknown. */
const char *pf_task_name(const struct task *task);
/* Tasks for the head of a file that begins at ts, sorted by tid, with their names then. */
struct task *const *pf_tasks_there(struct pf_tasks *t, uint64_t ts, size_t *ret_count);
/* Lets the table drop tasks that are dead by then. */
void pf_tasks_forget(struct pf_tasks *t, uint64_t ts);
