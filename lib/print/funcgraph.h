/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The function_graph tracer's events, whichever kernel wrote them (4.19 to 7). */
#pragma once

#include "print/event_table.h"

enum funcgraph_kind { FUNCGRAPH_ENTRY, FUNCGRAPH_EXIT };

struct number_at {
	uint32_t offset, size; /* size 0: there is none */
};

/* Where a format has its fields; an event of another kind has none. */
struct funcgraph_layout {
	enum funcgraph_kind kind;
	bool swap;	    /* the recorded machine's byte order is not ours */
	uint32_t word_size; /* its words, of which args are */
	uint32_t least;	    /* bytes of a record that has all but args */
	struct number_at func, depth;
	/* Of an entry: */
	struct number_at retaddr;
	uint32_t args_offset; /* UINT32_MAX: it has none */
	/* Of an exit: */
	struct number_at calltime, rettime, overrun, retval;
};

/* True if ev is one of them. */
bool funcgraph_layout_find(const struct event_table *t, const struct event *ev,
			   struct funcgraph_layout *ret);

static inline bool funcgraph_is(const struct event *ev, enum funcgraph_kind kind)
{
	return ev && ev->funcgraph && ev->funcgraph->kind == kind;
}

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
bool funcgraph_read(const struct event *ev, const struct record *rec, struct funcgraph *ret);
/* The same, but reads nothing else. */
bool funcgraph_read_func(const struct event *ev, const struct record *rec, uint64_t *ret);
/* Of a record that one of these has read: from -1 to 4096. */
int32_t funcgraph_depth(const struct event *ev, const struct record *rec);
