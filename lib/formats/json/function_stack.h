/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * State of each thread's functions while they are written: the open ones, by depth. Memory is
 * bounded; beyond that, events count as lost.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "formats/json/function_element.h"

struct level {
	uint64_t func, ts; /* of the open function; 0: none */
	uint64_t first;	   /* begin of the first function of this depth under the present caller; 0:
			      none */
	uint64_t end;	   /* end of the last one */
};

/* Consecutive calls of some functions by one caller. */
struct call_run {
	uint64_t parent;		   /* address of the caller */
	uint64_t first_ts, last_ts, calls; /* 0: no run */
	unsigned count;
	struct function_calls functions[FUNCTION_CALLS_MAX]; /* the first different ones */
};

struct function_stack {
	struct function_stack *next; /* in order of their first event */
	int32_t tid;
	bool skips_exit; /* the next exit was already written with its entry */
	uint64_t begun;	 /* begin of the last slice written */
	uint64_t now;	 /* latest time written */
	uint32_t depth, cap;
	struct level *levels; /* owned; `depth` levels in use */
	struct call_run *run; /* owned; NULL: none so far */
};

struct function_stacks;

int function_stacks_new(struct function_stacks **ret);
struct function_stacks *function_stacks_free(struct function_stacks *s);

/* NULL: too many threads, or out of memory. */
struct function_stack *function_stacks_get(struct function_stacks *s, int32_t tid);
/* Makes depth + 1 levels available, new ones empty. False: out of memory. */
bool function_stack_reach(struct function_stacks *s, struct function_stack *t, uint32_t depth);
/* The thread whose first event came first; ->next leads to all others. NULL: none. */
struct function_stack *function_stacks_first(const struct function_stacks *s);
