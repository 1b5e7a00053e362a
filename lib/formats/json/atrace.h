/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Marks in the words of Android's atrace that Trace Viewer takes in no line of the kernel's text,
 * as elements of traceEvents: "I|PID|NAME" and "N|PID|TRACK|NAME" are instants, of the thread and
 * of the process, "G|PID|TRACK|NAME|COOKIE" and "H|PID|TRACK|COOKIE" the begin and the end of an
 * asynchronous slice. An end that nothing was begun for stays in the text.
 */
#pragma once

#include "export/sink.h"

struct json_atrace;

/* Borrows all. print: the event of marks, or NULL. */
int json_atrace_new(struct json_atrace **ret, const struct trace_info *info,
		    const struct event *print);
struct json_atrace *json_atrace_free(struct json_atrace *a);
DEFINE_CLEANUP_FUNC(struct json_atrace *, json_atrace_free);

/*
 * 1: it is an element, which out has now with a comma and a newline before it; 0: it is none of
 * these; -ENOMEM.
 */
int json_atrace_event(struct json_atrace *a, const struct trace_event *ev, struct buf *out);
