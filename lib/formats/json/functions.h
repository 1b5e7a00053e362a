/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events of the function tracers as elements of traceEvents: Trace Viewer ignores such lines in the
 * kernel's text. Functions of a graph are slices on their thread. An entry of the function tracer
 * is an instant, or part of a slice for a run of calls from one place. Details: docs/json.md.
 */
#pragma once

#include "formats/json/function_element.h"

struct json_functions;

/* Receives one element, valid during the call; more: function_more_size() bytes. */
typedef int function_emit_t(void *userdata, const struct function_element *e, const void *more,
			    struct error *err);

/* Borrows all. */
int json_functions_new(struct json_functions **ret, const struct trace_info *info,
		       enum function_view view, function_emit_t *emit, void *userdata);
struct json_functions *json_functions_free(struct json_functions *f);
DEFINE_CLEANUP_FUNC(struct json_functions *, json_functions_free);

/* Whether ev is an event of the function tracers. */
bool json_functions_has(const struct json_functions *f, const struct trace_event *ev);
/*
 * True: ev is a hit with an element of its own (function_hit_read); it is noted, and need not be
 * passed to json_functions_event().
 */
bool json_functions_pass_hit(struct json_functions *f, const struct trace_event *ev);
/* Returns the error of emit(). */
int json_functions_event(struct json_functions *f, const struct trace_event *ev, struct error *err);
/* Events are missing after the one at ts. */
void json_functions_loss(struct json_functions *f, uint64_t ts);
/* Call after the last event. Returns as json_functions_event(). */
int json_functions_end(struct json_functions *f, struct error *err);
/* Names the idle tasks that have elements, each after a comma and a newline. */
void json_functions_name_idle(const struct json_functions *f, struct buf *out);
