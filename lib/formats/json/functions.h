/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The function tracers' events as elements of traceEvents: Trace Viewer takes no such
 * lines in the kernel's text. A graph's functions are slices on their thread; what
 * the function tracer tells, that a function was entered and from where, is an instant, or
 * a slice for each run of calls from one place. docs/json.md has the details.
 */
#pragma once

#include "formats/json/function_element.h"

struct json_functions;

/* Takes one element, valid during the call; calls: a run's. */
typedef int function_emit_t(void *userdata, const struct function_element *e,
			    const struct function_calls *calls, struct error *err);

/* Borrows all. */
int json_functions_new(struct json_functions **ret, const struct trace_info *info,
		       enum function_view view, function_emit_t *emit, void *userdata);
struct json_functions *json_functions_free(struct json_functions *f);
DEFINE_CLEANUP_FUNC(struct json_functions *, json_functions_free);

/* Whether ev is one of theirs. */
bool json_functions_has(const struct json_functions *f, const struct trace_event *ev);
/*
 * True: ev is a hit, and one element by itself (function_hit_read); it was noted, and needs not be
 * given.
 */
bool json_functions_pass_hit(struct json_functions *f, const struct trace_event *ev);
/* Fails as emit did. */
int json_functions_event(struct json_functions *f, const struct trace_event *ev, struct error *err);
/* Events are missing behind one of time ts. */
void json_functions_loss(struct json_functions *f, uint64_t ts);
/* Behind the last event. As json_functions_event. */
int json_functions_end(struct json_functions *f, struct error *err);
/* Names the idle tasks that have elements, each with a comma and a newline before it. */
void json_functions_name_idle(const struct json_functions *f, struct buf *out);
