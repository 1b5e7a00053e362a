/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Android atrace marks that Trace Viewer does not read from the kernel's text, written as elements
 * of traceEvents. "I|PID|NAME" and "N|PID|TRACK|NAME" are instants of thread and process;
 * "G|PID|TRACK|NAME|COOKIE" and "H|PID|TRACK|COOKIE" begin and end an asynchronous slice. An end
 * without a begin stays in the text.
 */
#pragma once

#include "export/sink.h"

struct json_atrace;

/* Borrows all. print: the print event, or NULL. */
int json_atrace_new(struct json_atrace **ret, const struct trace_info *info,
		    const struct event *print);
struct json_atrace *json_atrace_free(struct json_atrace *a);
DEFINE_CLEANUP_FUNC(struct json_atrace *, json_atrace_free);

/* 1: appended to out as an element, after a comma and a newline; 0: not such a mark; -ENOMEM. */
int json_atrace_event(struct json_atrace *a, const struct trace_event *ev, struct buf *out);
