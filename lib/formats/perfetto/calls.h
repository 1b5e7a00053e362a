/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls of function_graph as slices with what the kernel recorded beside them: return values,
 * callers and arguments. Perfetto's messages of the graph's events have no fields for these, and
 * the entry with a caller has no message. In such a recording the events themselves are generic, of
 * which readers make no slices.
 */
#pragma once

#include "export/sink.h"
#include "formats/perfetto/marks.h"
#include "print/printer.h"

/* True if the recording's function_graph has such values. */
bool pf_calls_wanted(const struct trace_info *info);

struct pf_calls {
	const struct trace_info *info; /* borrowed; NULL: no calls are written */
	struct printer *printer;       /* borrowed */
	struct buf name, args, text;
};
void pf_calls_deinit(struct pf_calls *c);

/*
 * Appends the begin or the end of a call, after its track; nothing for another event, or a damaged
 * one. 0 or -ENOMEM.
 */
int pf_calls_put(struct pf_calls *c, struct pf_marks *m, const struct trace_event *ev,
		 struct buf *out);
