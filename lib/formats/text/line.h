/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What stands before an event on the kernel's line: task, pid, CPU, flags, time.
 * As trace_print_context() and trace_print_lat_fmt() of kernel/trace/trace_output.c
 * write it, in the form of the kernel that recorded (Linux 5.4 to 7).
 */
#pragma once

#include "export/sink.h"

/* Whether a kernel is of that version or later: one that does not tell is. */
bool release_at_least(const char *release, unsigned major, unsigned minor);

/* How the recorded kernel writes its lines. */
struct line_form {
	bool context;	    /* options/context-info: there is something before the event */
	bool flags;	    /* options/irq-info */
	bool migrate;	    /* 5.15: a column for migrate_disable, in the upper preempt nibble */
	bool bh;	    /* 5.17: D and b tell that bottom halves are off */
	bool lazy;	    /* 6.13: the bit of "irqs-off not supported" became NEED_RESCHED_LAZY */
	bool had_tgid;	    /* the recorded header has the TGID column */
	unsigned pid_width; /* 7; 5 before 5.10 */
	bool counter;	    /* the clock counts, and is no time */
};
void line_form_get(struct line_form *ret, const struct trace_info *info);

/* Columns as the kernel writes them, or only such as every reader of the text takes. */
enum line_style { LINE_KERNEL, LINE_PORTABLE };

struct line;

int line_new(struct line **ret, const struct trace_info *info, bool tgid, enum line_style style);
struct line *line_free(struct line *l);
DEFINE_CLEANUP_FUNC(struct line *, line_free);

/*
 * Appends the prefix, "timestamp: " included; marks the task as seen. Returns whether it is plain
 * (base/plain.h).
 */
bool line_prefix(struct line *l, const struct trace_event *ev, struct buf *out);

/* The task's name at ts as the kernel finds it, terminated; marks the task as seen. */
void line_comm(struct line *l, int32_t pid, uint64_t ts, char comm[static 64]);

/* Tasks may have other names from here on. */
void line_forget(struct line *l);

/* Appends the comment lines that explain the columns. */
void line_legend(const struct line *l, struct buf *out);

/* Appends the comment lines that stand at the head of the kernel's trace file. */
void line_header(const struct line *l, const struct ledger_totals *totals, struct buf *out);
