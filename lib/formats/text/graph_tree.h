/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What function_graph's lines show that depends on the events before them, or behind: whether a
 * function called none, whose tree a CPU goes on with, which exit has to name its function. One
 * thread takes the events, in their order; what comes of them any thread can write (graph_text.h).
 */
#pragma once

#include "base/cleanup.h"
#include "trace/trace_event.h"
#include "trace/trace_info.h"

/* What the recorded kernel shows. */
struct graph_form {
	bool is_tracer;	 /* function_graph is the recording's: it has the header, and all lines */
	unsigned flags;	 /* GRAPH_... */
	bool old_retval; /* as kernels write it until 6.12 */
};

void graph_form_get(struct graph_form *ret, const struct trace_info *info);

enum graph_kind {
	GRAPH_LEAF, /* a function that called none, with its exit */
	GRAPH_ENTRY,
	GRAPH_EXIT,
	GRAPH_COMMENT, /* any other event */
};

struct graph_line {
	const struct event *desc, *exit; /* borrowed from the event table; exit: a leaf's */
	uint64_t ts;
	uint32_t cpu;
	int32_t pid;
	int32_t pid_before; /* where switches is set: the CPU's lines were that task's */
	int32_t depth;	    /* the function's; of a comment that of its CPU's tree */
	uint8_t flags, preempt_count;
	uint8_t kind;
	bool switches;
	bool names;  /* an exit, of another entry than the last one of its depth: it tells whose */
	bool is_irq; /* the function is one that handles interrupts */
	uint32_t len, exit_len; /* of the records, in bytes */
};

struct graph_tree;

/* Borrows info. 0 or -ENOMEM. */
int graph_tree_new(struct graph_tree **ret, const struct trace_info *info,
		   const struct graph_form *form);
struct graph_tree *graph_tree_free(struct graph_tree *t);
DEFINE_CLEANUP_FUNC(struct graph_tree *, graph_tree_free);

/* The tasks whose names ev's line may show, 2 at most; returns how many they are. */
unsigned graph_tree_tasks(const struct graph_tree *t, const struct trace_event *ev,
			  int32_t pids[static 2]);

/*
 * 1: ev has a line of its own, *ret; 0: it has none, as it is told with another or hidden;
 * GRAPH_OTHER: it is none of the tree's, and has an ordinary line; or -ENOMEM.
 */
#define GRAPH_OTHER 2
int graph_tree_take(struct graph_tree *t, const struct trace_event *ev, struct graph_line *ret);
