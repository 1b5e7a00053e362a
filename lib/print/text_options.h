/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options of an instance's trace_options that change the text of its trace file. */
#pragma once

#include <stdbool.h>

/* Options of the function_graph tracer. */
enum {
	GRAPH_OVERRUN = 1 << 0,
	GRAPH_CPU = 1 << 1,
	GRAPH_OVERHEAD = 1 << 2,
	GRAPH_PROC = 1 << 3,
	GRAPH_DURATION = 1 << 4,
	GRAPH_ABSTIME = 1 << 5,
	GRAPH_IRQS = 1 << 6,
	GRAPH_TAIL = 1 << 7,
	GRAPH_RETVAL = 1 << 8,
	GRAPH_RETVAL_HEX = 1 << 9,
	GRAPH_RETADDR = 1 << 10,
	GRAPH_ARGS = 1 << 11,
	GRAPH_DEFAULT = GRAPH_CPU | GRAPH_OVERHEAD | GRAPH_DURATION | GRAPH_IRQS,
};

/* All zero: the kernel's defaults. */
struct text_options {
	bool no_context; /* nocontext-info */
	bool no_irq_info;
	bool no_parent;		   /* noprint-parent */
	bool sym_offset, sym_addr; /* for ftrace's own events */
	bool sym_userobj;	   /* for user stacks */
	bool no_sleep_time;	   /* nosleep-time: durations without sleep */
	unsigned graph;
};

/* Parses trace_options. Options missing from text keep their defaults, GRAPH_DEFAULT among them. */
void text_options_parse(struct text_options *ret, const char *text);
