/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The marks of all sources as one sequence, in the trace clock: files that
 * applications wrote themselves (source.h), and the rings of the recording (rings.h).
 * Marks of equal times come in the order of their sources; a kernel's event of the same time comes
 * before them.
 */
#pragma once

#include "export/export.h"
#include "marks/rings.h"
#include "marks/source.h"
#include "samples/profile_marks.h"
#include "samples/sample_feed.h"
#include "trace/index.h"

struct mark_feed;

/*
 * Reads the merged files. What is wrong with one becomes a warning of the
 * index, and the trace incomplete: the kernel's part is worth having without.
 */
int mark_feed_new(struct mark_feed **ret, const struct export_options *options,
		  struct stream_index *index, const struct stream_reader *reader,
		  struct error *err);
struct mark_feed *mark_feed_free(struct mark_feed *m);
DEFINE_CLEANUP_FUNC(struct mark_feed *, mark_feed_free);

/* Threads that only samples tell of are to be named: once tasks are known, before the first mark. 0
 * or -errno. */
int mark_feed_see_tasks(struct mark_feed *m, const struct stream_index *index,
			const struct stream_reader *reader);
/* 1, valid until the next call; 0: no more; -errno. */
int mark_feed_next(struct mark_feed *m, struct mark *ret, struct error *err);
/*
 * Of a recording that is followed, at the end of what was given out: what its rings have before
 * that offset in the stream follows. 0 or -errno.
 */
int mark_feed_extend(struct mark_feed *m, uint64_t limit, struct error *err);
/* The offset in the stream before which nothing is needed any more. */
uint64_t mark_feed_needs(const struct mark_feed *m);
/* How many were given out. */
uint64_t mark_feed_count(const struct mark_feed *m);
/* Once all were: warns of what was left out, and of files from another time than the kernel's
 * events. */
int mark_feed_warn(struct mark_feed *m, struct stream_index *index, uint64_t first_ts,
		   uint64_t last_ts);

const struct mark_origin *mark_feed_origins(const struct mark_feed *m, size_t *ret_count);
/* The recording's own samples, so far; false: it has none. */
bool mark_feed_samples(const struct mark_feed *m, struct sample_feed_sum *ret);
/* The CPU profiles, and how their samples were placed. */
const struct profile_sum *mark_feed_profiles(const struct mark_feed *m, size_t *ret_count);
/* The clock_sync events of the files, in the trace clock. */
const struct mark_sync *mark_feed_syncs(const struct mark_feed *m, size_t *ret_count);
/* Of the recording's own rings. */
void mark_feed_rings(const struct mark_feed *m, struct mark_rings_sum *ret);
const char *mark_feed_controller_key(const struct mark_feed *m); /* or NULL */
bool mark_feed_unit_ms(const struct mark_feed *m);
