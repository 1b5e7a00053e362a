/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The function_graph tracer's lines: print_graph_function() of
 * kernel/trace/trace_functions_graph.c. Where it is the recording's tracer, all
 * events but functions and stacks are comments in its tree.
 */
#pragma once

#include "export/text/line.h"

struct graph_text;

/* Borrows all. */
int graph_text_new(struct graph_text **ret, const struct trace_info *info, struct line *line,
		   struct printer *printer);
struct graph_text *graph_text_free(struct graph_text *g);
DEFINE_CLEANUP_FUNC(struct graph_text *, graph_text_free);

/* Function_graph is the recording's tracer: it has the header, and the lines of other events. */
bool graph_text_is_tracer(const struct graph_text *g);
void graph_text_header(const struct graph_text *g, struct buf *out);

/* Appends whole lines, or none; false: ev is not its own and has an ordinary line. */
bool graph_text_event(struct graph_text *g, const struct trace_event *ev, struct buf *out);
