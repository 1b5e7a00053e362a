/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * State of function_graph's lines that depends on neighbouring events: whether a function is a
 * leaf, whose tree a CPU continues, which exit must name its function. One thread passes all events
 * in order; any thread can then write the lines (graph_text.h).
 */
#pragma once

#include "base/cleanup.h"
#include "trace/trace_event.h"
#include "trace/trace_info.h"

/* What the recorded kernel shows. */
struct graph_form {
	bool is_tracer;	 /* function_graph is the current tracer: its header, and all lines in its
			    form */
	unsigned flags;	 /* GRAPH_... */
	bool old_retval; /* format of kernels until 6.12 */
};

void graph_form_get(struct graph_form *ret, const struct trace_info *info);

enum graph_kind {
	GRAPH_LEAF, /* a function without callees, with its exit */
	GRAPH_ENTRY,
	GRAPH_EXIT,
	GRAPH_COMMENT, /* any other event, shown as a comment */
};

struct graph_line {
	const struct event *desc, *exit; /* borrowed from the event table; exit: for a leaf */
	uint64_t ts;
	uint32_t cpu;
	int32_t pid;
	int32_t pid_before; /* if `switches` is set: the task of the CPU's lines so far */
	int32_t depth;	    /* depth of the function; for a comment that of its CPU's tree */
	uint8_t flags, preempt_count;
	uint8_t kind;
	bool switches;
	bool names;  /* an exit without the matching entry: its line names the function */
	bool is_irq; /* the function is an interrupt handler's entry */
	uint32_t len, exit_len; /* bytes of the records */
};

struct graph_tree;

/* Borrows info. 0 or -ENOMEM. */
int graph_tree_new(struct graph_tree **ret, const struct trace_info *info,
		   const struct graph_form *form);
struct graph_tree *graph_tree_free(struct graph_tree *t);
DEFINE_CLEANUP_FUNC(struct graph_tree *, graph_tree_free);

/* The tasks whose names ev's line may show; returns their number, at most 2. */
unsigned graph_tree_tasks(const struct graph_tree *t, const struct trace_event *ev,
			  int32_t pids[static 2]);

/*
 * 1: *ret is ev's line; 0: no line (hidden, or shown with another event); GRAPH_OTHER: write an
 * ordinary line; or -ENOMEM.
 */
#define GRAPH_OTHER 2
int graph_tree_take(struct graph_tree *t, const struct trace_event *ev, struct graph_line *ret);
