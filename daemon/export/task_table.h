/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who a tid was, when. A tid has one or more lives (tids are used again); in
 * each it has one process and a last name. The name on a line is the last name
 * of that life, as the kernel prints it and as viewers want it: one thread, one name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct task {
	int32_t tid, tgid, ppid; /* tgid 0: unknown */
	uint64_t from_ts;	 /* of the trace clock; 0: was there before the recording */
	uint64_t start_ns;	 /* since boot; 0: unknown */
	uint32_t uid;
	bool kthread;
	bool seen;     /* has an event in the trace (set while exporting) */
	char comm[64]; /* terminated; any bytes */
	char *cmdline; /* owned; NUL between arguments, or NULL */
	size_t cmdline_len;
};

struct task_table;

int task_table_new(struct task_table **ret);
struct task_table *task_table_free(struct task_table *t);
DEFINE_CLEANUP_FUNC(struct task_table *, task_table_free);

/* The task that tid was at ts; NULL: nobody told. Valid until the table changes. */
struct task *task_table_find(struct task_table *t, int32_t tid, uint64_t ts);
/* All lives, ordered by tid and from_ts. */
struct task *const *task_table_all(struct task_table *t, size_t *ret_count);
