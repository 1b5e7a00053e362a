/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events of the function_graph tracer, from kernels 4.19 to 7. */
#pragma once

#include "print/event_table.h"

enum funcgraph_kind { FUNCGRAPH_ENTRY, FUNCGRAPH_EXIT };

struct printer;

struct number_at {
	uint32_t offset, size; /* size 0: no such field */
};

/* Field offsets of one format. Events of the other kind lack some fields. */
struct funcgraph_layout {
	enum funcgraph_kind kind;
	bool swap;	    /* the recorded machine has the other byte order */
	uint32_t word_size; /* bytes of a machine word; args consists of these */
	uint32_t least;	    /* bytes of a record with all fields but args */
	struct number_at func, depth;
	/* Fields of an entry: */
	struct number_at retaddr;
	uint32_t args_offset; /* UINT32_MAX: none */
	/* Fields of an exit: */
	struct number_at calltime, rettime, overrun, retval;
};

/* True if ev is such an event. */
bool funcgraph_layout_find(const struct event_table *t, const struct event *ev,
			   struct funcgraph_layout *ret);

static inline bool funcgraph_is(const struct event *ev, enum funcgraph_kind kind)
{
	return ev && ev->funcgraph && ev->funcgraph->kind == kind;
}

struct funcgraph {
	enum funcgraph_kind kind;
	uint64_t func;
	int32_t depth; /* 0: outermost */
	bool has_retaddr, has_retval;
	uint64_t retaddr, retval;
	uint64_t calltime, rettime; /* by the kernel's local clock, not the trace clock */
	uint32_t overrun;
	const uint8_t *args; /* words of the recorded machine; borrowed */
	size_t arg_count;    /* 0: not recorded */
};

/* False: ev is no such event, or rec is too short. */
bool funcgraph_read(const struct event *ev, const struct record *rec, struct funcgraph *ret);
/* Reads only the function's address. */
bool funcgraph_read_func(const struct event *ev, const struct record *rec, uint64_t *ret);
/* Depth of a record that one of these has read: -1 to 4096. */
int32_t funcgraph_depth(const struct event *ev, const struct record *rec);

/*
 * Writes a return value as print_graph_retval() does: an error code in decimals, any other value in
 * hexadecimals, addresses hashed. Returns the end, at most 20 bytes on.
 */
char *funcgraph_put_retval(const struct printer *p, char *to, uint64_t retval, bool hex);
