/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ftrace's own events (system "ftrace"), printed as in kernel/trace/trace_output.c. */
#pragma once

#include "print/event_table.h"

enum builtin {
	BUILTIN_NONE,
	BUILTIN_FUNCTION,
	BUILTIN_CONTEXT_SWITCH,
	BUILTIN_WAKEUP,
	BUILTIN_KERNEL_STACK,
	BUILTIN_USER_STACK,
	BUILTIN_BPUTS,
	BUILTIN_BPRINT,
	BUILTIN_PRINT,
	BUILTIN_HWLAT,
	BUILTIN_OSNOISE,
	BUILTIN_TIMERLAT,
	BUILTIN_RAW_DATA,
	BUILTIN_FUNC_REPEATS,
};

enum builtin builtin_find(const struct event *ev);
/* Returns 0, -EBADMSG or -ENOMEM. */
int builtin_print(enum builtin b, struct printer *p, const struct event *ev,
		  const struct record *rec, struct buf *out);
/* Appends only the message of a printk event. Returns false if ev is no printk event. */
bool builtin_print_message(struct printer *p, const struct event *ev, const struct record *rec,
			   struct buf *out);
