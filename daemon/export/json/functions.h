/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The function tracers' events as elements of traceEvents: Trace Viewer takes no such
 * lines in the kernel's text. A graph's functions are slices on their thread; what
 * the function tracer tells, that a function was entered and from where, is an instant, or
 * a slice for each run of calls from one place. docs/json.md has the details.
 */
#pragma once

#include "export/json/spool.h"
#include "export/sink.h"

struct json_functions;

/* Borrows all. */
int json_functions_new(struct json_functions **ret, const struct trace_info *info,
		       struct printer *printer, struct json_spool *spool, enum function_view view);
struct json_functions *json_functions_free(struct json_functions *f);
DEFINE_CLEANUP_FUNC(struct json_functions *, json_functions_free);

/* Whether ev is one of theirs. */
bool json_functions_has(const struct json_functions *f, const struct trace_event *ev);
int json_functions_event(struct json_functions *f, const struct trace_event *ev);
/* Events are missing behind one of time ts. */
void json_functions_loss(struct json_functions *f, uint64_t ts);
/* Tasks may be others from here on. */
void json_functions_forget(struct json_functions *f);
/* Behind the last event. */
int json_functions_end(struct json_functions *f);
