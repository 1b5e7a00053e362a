/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Formats of events as kernels have them, in addition to those of maker_head. */
#pragma once

#include "make_stream.h"

enum {
	ID_FUNCTION = 1,
	ID_STACK = 4,
	ID_GRAPH_EXIT = 10,
	ID_GRAPH_ENTRY = 11,
	ID_GRAPH_RETVAL,
	ID_GRAPH_ARGS = 20,
	ID_GRAPH_CALLER,
	ID_FREE = 104,
	ID_WAKING = 300,
	ID_ENTER,
	ID_EXIT,
};

/* sched_waking, sys_enter, sys_exit. */
void maker_kernel_formats(struct maker *m);
/* irq_handler_entry and irq_handler_exit, and their events. */
void maker_irq_formats(struct maker *m);
void event_irq(struct maker *m, uint64_t ts, int32_t pid, uint32_t irq, bool entry);
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
/* funcgraph_exit of Linux 6.5, with CONFIG_FUNCTION_GRAPH_RETVAL; and its event. */
void maker_graph_retval_format(struct maker *m);
void event_graph_retval(struct maker *m, uint64_t ts, int32_t pid, uint64_t func, uint32_t depth,
			uint64_t took, uint64_t value);
/*
 * Entries with arguments (Linux 6.15), and with a caller (6.13; or as in 6.19, where that is the
 * first argument); and their event, of one of these kinds.
 */
void maker_graph_value_formats(struct maker *m, bool caller_has_args);
void event_graph_words(struct maker *m, uint64_t ts, int32_t pid, uint16_t id, uint64_t func,
		       uint64_t depth, const uint64_t *words, size_t count);
