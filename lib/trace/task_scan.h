/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fills the task table from a stream. */
#pragma once

#include "trace/index.h"

/*
 * Applies TASKS chunks, and births and renames of BUFFER_TASKS, in order of time. Needs an index
 * and a sealed event table. Borrows both.
 */
struct task_feed;
int task_feed_new(struct task_feed **ret, struct stream_index *index,
		  const struct stream_reader *reader, struct error *err);
struct task_feed *task_feed_free(struct task_feed *f);
DEFINE_CLEANUP_FUNC(struct task_feed *, task_feed_free);
/* Applies all that the index can give out so far (`ripe`). Empties info.task_readings. */
int task_feed_advance(struct task_feed *f, struct error *err);
/* See merge_needs(). */
uint64_t task_feed_needs(const struct task_feed *f);

/* True if events of the trace could name tasks that the feed does not. */
bool task_scan_may_name(struct stream_index *index);
/*
 * Searches the whole main buffer once for names of unnamed tids: sched and signal events carry
 * them. For task_table_set_filler().
 */
int task_scan_names(struct stream_index *index, const struct stream_reader *reader,
		    struct error *err);
