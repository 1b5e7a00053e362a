/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Merges the marks of all sources into one sequence, in the trace clock: applications' files
 * (source.h) and the rings of the recording (rings.h). At equal times the order is: kernel events,
 * then the sources in their order.
 */
#pragma once

#include "export/export.h"
#include "marks/polls.h"
#include "marks/rings.h"
#include "marks/source.h"
#include "samples/profile_marks.h"
#include "samples/sample_feed.h"
#include "trace/index.h"

struct export_format;
struct mark_feed;

/*
 * Reads the merged files. A faulty file becomes a warning and marks the trace incomplete: the
 * kernel's part is useful without it.
 */
int mark_feed_new(struct mark_feed **ret, const struct export_options *options,
		  const struct export_format *format, struct stream_index *index,
		  const struct stream_reader *reader, struct error *err);
struct mark_feed *mark_feed_free(struct mark_feed *m);
DEFINE_CLEANUP_FUNC(struct mark_feed *, mark_feed_free);

/*
 * Makes sure that sampled threads have names. Call it after the task scan, before the first mark. 0
 * or -errno.
 */
int mark_feed_see_tasks(struct mark_feed *m, const struct stream_index *index,
			const struct stream_reader *reader);
/* 1, valid until the next call; 0: no more; -errno. */
int mark_feed_next(struct mark_feed *m, struct mark *ret, struct error *err);
/*
 * Calls give with a begin at ts for each slice that is open. ahead: the mark returned last, if it
 * is not passed on yet; or NULL.
 */
int mark_feed_reopen(struct mark_feed *m, const struct mark *ahead, uint64_t ts,
		     int (*give)(void *userdata, const struct mark *mark, struct error *err),
		     void *userdata, struct error *err);
/*
 * Followed recording, after the end was returned: continues with ring data below the stream offset
 * `limit`. 0 or -errno.
 */
int mark_feed_extend(struct mark_feed *m, uint64_t limit, struct error *err);
/* Stream offset below which data is no longer needed. */
uint64_t mark_feed_needs(const struct mark_feed *m);
/* Number of marks returned, without those left out. */
uint64_t mark_feed_count(const struct mark_feed *m);
/* The mark returned last does not go into the output. */
void mark_feed_leave_out(struct mark_feed *m);
uint64_t mark_feed_left_out(const struct mark_feed *m);
/*
 * After the last mark: warns of dropped marks, and of files whose times lie outside the kernel
 * events'.
 */
int mark_feed_warn(struct mark_feed *m, struct stream_index *index, uint64_t first_ts,
		   uint64_t last_ts);

const struct mark_origin *mark_feed_origins(const struct mark_feed *m, size_t *ret_count);
/* Facts about the recording's own samples so far; false: none. */
bool mark_feed_samples(const struct mark_feed *m, struct sample_feed_sum *ret);
/* The CPU profiles and where their samples were placed. */
const struct profile_sum *mark_feed_profiles(const struct mark_feed *m, size_t *ret_count);
/* The clock_sync events of the files, in the trace clock. */
const struct mark_sync *mark_feed_syncs(const struct mark_feed *m, size_t *ret_count);
/* Facts about the recording's own rings. */
void mark_feed_rings(const struct mark_feed *m, struct mark_rings_sum *ret);
const char *mark_feed_controller_key(const struct mark_feed *m); /* or NULL */
/* The power trace of the first file that has one, which Trace Viewer can read; or empty. */
struct text mark_feed_power(const struct mark_feed *m);
bool mark_feed_unit_ms(const struct mark_feed *m);
