/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is known of each thread's functions while they are written: which are
 * open, by depth. Its memory is bounded; what it can't hold is not there, as if
 * the events had been lost.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "formats/json/function_element.h"

struct level {
	uint64_t func, ts; /* of the function that is open; 0: none is */
	uint64_t first; /* when the first one of this depth began under the present caller; 0: none
			 */
	uint64_t end;	/* of the last one */
};

/* Calls of some functions by one, one after the other. */
struct call_run {
	uint64_t parent;		   /* where the caller begins */
	uint64_t first_ts, last_ts, calls; /* 0: there is none */
	unsigned count;
	struct function_calls functions[FUNCTION_CALLS_MAX]; /* the first ones that are different */
};

struct function_stack {
	int32_t tid;
	bool skips_exit; /* the next exit was written with its entry */
	uint64_t begun;	 /* when the last slice begins that was written */
	uint64_t now;	 /* the latest time that was written */
	uint32_t depth, cap;
	struct level *levels; /* owned; depth of them count */
	struct call_run *run; /* owned; NULL: never had one */
};

struct function_stacks;

int function_stacks_new(struct function_stacks **ret);
struct function_stacks *function_stacks_free(struct function_stacks *s);

/* NULL: there are too many threads, or no memory. */
struct function_stack *function_stacks_get(struct function_stacks *s, int32_t tid);
/* One more than depth levels, new ones empty; false: there is no room. */
bool function_stack_reach(struct function_stacks *s, struct function_stack *t, uint32_t depth);
/* All threads in turn, from a *cursor of 0; NULL: there are no more. */
struct function_stack *function_stacks_next(struct function_stacks *s, size_t *cursor);
