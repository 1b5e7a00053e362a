/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the start of a kernel line: task, pid, CPU, flags, time. Follows trace_print_context() and
 * trace_print_lat_fmt() of kernel/trace/trace_output.c, in the form of the recorded kernel (Linux
 * 5.4 to 7, with and without the patches for PREEMPT_RT).
 */
#pragma once

#include "export/sink.h"

/* Whether the kernel is of that version or later; true if unknown. */
bool release_at_least(const char *release, unsigned major, unsigned minor);

/* Columns as the kernel writes them, or restricted to those that every reader accepts. */
enum line_style { LINE_KERNEL, LINE_PORTABLE };

struct line;

int line_new(struct line **ret, const struct trace_info *info, bool tgid, enum line_style style);
struct line *line_free(struct line *l);
DEFINE_CLEANUP_FUNC(struct line *, line_free);

/*
 * Appends the prefix, including "timestamp: "; marks the task as seen. Returns whether it is plain
 * (base/plain.h).
 */
bool line_prefix(struct line *l, const struct trace_event *ev, struct buf *out);

/* The task's name at ts, as the kernel would find it, NUL-terminated; marks the task as seen. */
void line_comm(struct line *l, int32_t pid, uint64_t ts, char comm[static 64]);

/* Drops cached task names: they may have changed. */
void line_forget(struct line *l);

/* Appends the comment lines that explain the columns. */
void line_legend(const struct line *l, struct buf *out);

/* Appends the comment lines at the head of the kernel's trace file. totals NULL: not known yet. */
void line_header(const struct line *l, const struct ledger_totals *totals, struct buf *out);
