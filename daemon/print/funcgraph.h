/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The function_graph tracer's events, whichever kernel wrote them (4.19 to 7). */
#pragma once

#include "print/event_table.h"

enum funcgraph_kind { FUNCGRAPH_ENTRY, FUNCGRAPH_EXIT };

/* Where a format has its fields; an event of another kind has none. */
struct funcgraph_layout {
	enum funcgraph_kind kind;
	const struct field *func, *depth;
	const struct field *retaddr, *args;		  /* of an entry; NULL: it has none */
	const struct field *calltime, *rettime, *overrun; /* of an exit */
	const struct field *retval;			  /* NULL: the kernel does not tell it */
};

/* True if ev is one of them. */
bool funcgraph_layout_find(const struct event *ev, struct funcgraph_layout *ret);

struct funcgraph {
	enum funcgraph_kind kind;
	uint64_t func;
	int32_t depth; /* from 0 */
	bool has_retaddr, has_retval;
	uint64_t retaddr, retval;
	uint64_t calltime, rettime; /* by the kernel's local clock, not the trace clock */
	uint32_t overrun;
	const uint8_t *args; /* words of the recorded machine; borrowed */
	size_t arg_count;    /* 0: not recorded */
};

/* False if ev is none of them, or rec too short for it. */
bool funcgraph_read(const struct event_table *t, const struct event *ev, const struct record *rec,
		    struct funcgraph *ret);

/*
 * Whether entry, which rec holds, is that of a leaf: true and its exit if that is what
 * next, the CPU's next record, holds. next NULL: false.
 */
bool funcgraph_read_leaf(const struct event_table *t, const struct record *rec,
			 const struct record *next, const struct funcgraph *entry,
			 struct funcgraph *ret);
