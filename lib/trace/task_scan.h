/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fills the task table from what a stream tells of tasks. */
#pragma once

#include "trace/index.h"

/*
 * The TASKS chunks, and the births and renames of BUFFER_TASKS, in the order
 * of time. Needs the index and a sealed event table. Borrows both.
 */
struct task_feed;
int task_feed_new(struct task_feed **ret, struct stream_index *index,
		  const struct stream_reader *reader, struct error *err);
struct task_feed *task_feed_free(struct task_feed *f);
DEFINE_CLEANUP_FUNC(struct task_feed *, task_feed_free);
/* All that the index has by now, as far as it is ripe; empties info.task_readings. */
int task_feed_advance(struct task_feed *f, struct error *err);
/* As merge_needs. */
uint64_t task_feed_needs(const struct task_feed *f);

/* Whether events of the trace could name tasks that the feed does not. */
bool task_scan_may_name(struct stream_index *index);
/*
 * Searches the whole main buffer for names of tids that have none: sched and
 * signal events carry them. One pass over the trace; for task_table_set_filler.
 */
int task_scan_names(struct stream_index *index, const struct stream_reader *reader,
		    struct error *err);

/* An instant of CLOCK_BOOTTIME by the trace clock; 0 if they are not related by the stream. */
uint64_t trace_ts_of_boot(const struct trace_info *info, uint64_t boot_ns);
