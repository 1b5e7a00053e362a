/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ftrace's own events (system "ftrace"), as kernel/trace/trace_output.c prints them. */
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
/* 0, -EBADMSG, -ENOMEM. */
int builtin_print(enum builtin b, struct printer *p, const struct event *ev,
		  const struct record *rec, struct buf *out);
/* Of a printk's event its message alone; false: ev is none. */
bool builtin_print_message(struct printer *p, const struct event *ev, const struct record *rec,
			   struct buf *out);
