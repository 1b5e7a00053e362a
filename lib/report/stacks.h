/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Distinct stacks of the kernel's functions: events kernel_stack of the option stacktrace. */
#pragma once

#include "report/kind.h"

/* Outer functions beyond these are left out. */
#define STACK_DEPTH_MAX 32U
/* More stacks than this share one. */
#define STACKS_MAX 16384U

struct stack {
	uint32_t depth;
	bool used, is_cut, is_rest;
	uint64_t places[STACK_DEPTH_MAX]; /* the innermost one first */
};

struct stacks {
	struct report_env *env;
	struct rows rows; /* of struct stack */
	uint32_t offset;  /* of the places in the event; 0: it has none */
	uint32_t word;	  /* bytes of a place */
	struct stack rest;
};

/* Asks for the events. False: the recording has none. */
bool stacks_init(struct stacks *s, struct report *r, report_handler handler);
void stacks_deinit(struct stacks *s);
/* The event's stack. NULL: out of memory. */
const struct stack *stacks_get(struct stacks *s, const struct trace_event *ev);
/* Puts "innermost < caller < ..."; "?" if stack is NULL. */
void table_put_stack(struct table *t, const struct report_env *env, const struct stack *stack);
