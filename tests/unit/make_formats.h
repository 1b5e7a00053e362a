/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Formats of events as kernels have them, in addition to those of maker_head. */
#pragma once

#include "make_stream.h"

enum {
	ID_FUNCTION = 1,
	ID_STACK = 4,
	ID_GRAPH_EXIT = 10,
	ID_GRAPH_ENTRY = 11,
	ID_FREE = 104,
	ID_WAKING = 300,
	ID_ENTER,
	ID_EXIT
};

/* sched_waking, sys_enter, sys_exit. */
void maker_kernel_formats(struct maker *m);
/* sched_process_free, and its event. */
void maker_free_format(struct maker *m);
void event_free(struct maker *m, uint64_t ts, int32_t tid, const char *comm);
/* function */
void maker_function_format(struct maker *m);
/* kernel_stack of at most eight places. */
void maker_stack_format(struct maker *m);
/* funcgraph_entry alone; or with funcgraph_exit. */
void maker_graph_entry_format(struct maker *m);
void maker_graph_formats(struct maker *m);
/* Their events. */
void event_graph_entry(struct maker *m, uint64_t ts, int32_t pid, uint64_t func, uint32_t depth);
void event_graph_exit(struct maker *m, uint64_t ts, int32_t pid, uint64_t func, uint32_t depth,
		      uint32_t overrun, uint64_t called, uint64_t returned);
