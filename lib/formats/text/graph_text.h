/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the lines of the function_graph tracer, see print_graph_function() in
 * kernel/trace/trace_functions_graph.c.
 */
#pragma once

#include "formats/text/graph_tree.h"
#include "formats/text/line.h"

struct graph_text;

/* Borrows all but form. 0 or -ENOMEM. */
int graph_text_new(struct graph_text **ret, const struct trace_info *info,
		   const struct graph_form *form, struct line *line, struct printer *printer);
struct graph_text *graph_text_free(struct graph_text *g);
DEFINE_CLEANUP_FUNC(struct graph_text *, graph_text_free);

void graph_text_header(const struct graph_text *g, struct buf *out);
/*
 * Appends a line of the tree and those around it. record: its bytes, followed by those of a leaf's
 * exit. 0 or -ENOMEM.
 */
int graph_text_line(struct graph_text *g, const struct graph_line *line, const uint8_t *record,
		    struct buf *out);
