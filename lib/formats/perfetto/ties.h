/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How other clocks are tied to the trace: for readers that convert times a clock of our sequence,
 * for people an instant at each tie, with its offset, its bound and the drift.
 */
#pragma once

#include "export/mark_feed.h"
#include "export/sink.h"
#include "formats/perfetto/marks.h"

/* The clock of the n-th merged file, in ClockSnapshots. */
#define PF_CLOCK_MERGED 65

/* Where the snapshots of all merged files' ties have got to. */
struct pf_tie_cursor {
	const struct mark_origin *origins;
	size_t count;
	size_t next[EXPORT_MERGES_MAX];
};
void pf_tie_cursor_init(struct pf_tie_cursor *c, const struct mark_feed *marks);
/*
 * ClockSnapshots of the ties before that time of the trace clock, which ClockSnapshots know by the
 * number builtin. Readers want all snapshots in order. 0 or -ENOMEM.
 */
int pf_put_ties(struct pf_tie_cursor *c, uint64_t before, uint32_t builtin, struct buf *out);

/* The instants. 0 or -ENOMEM. */
int pf_marks_put_ties(struct pf_marks *m, const struct sink_env *env, struct buf *out);
