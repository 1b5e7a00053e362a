/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which tasks are told of when: at a file's head those that are there, later each as it is
 * born. Who is gone is in no later head, so that heads don't grow with a recording's length.
 */
#pragma once

#include "trace/task_table.h"

struct pf_tasks {
	struct task_table *table; /* borrowed, and all lives */
	struct task *known;	  /* the last that was looked at, in the order of becoming known */
	struct task **there;	  /* told of, and not known to be gone */
	size_t there_count, there_cap;
	struct task **coming; /* to be told of, by birth */
	size_t coming_next, coming_count, coming_cap;
};

void pf_tasks_deinit(struct pf_tasks *t);
/* Looks for lives that have become known. 0 or -ENOMEM. */
int pf_tasks_learn(struct pf_tasks *t);
/* The next to be told of that is born by ts, which counts as told then; NULL: none. */
struct task *pf_tasks_next(struct pf_tasks *t, uint64_t ts);
/* Those that a file has to begin with at ts, by number. */
struct task *const *pf_tasks_there(struct pf_tasks *t, uint64_t ts, size_t *ret_count);
/* The table may forget who is gone by then. */
void pf_tasks_forget(struct pf_tasks *t, uint64_t ts);
