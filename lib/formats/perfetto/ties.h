/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the ties of other clocks to the trace: as a sequence clock for readers that convert times,
 * and for people as an instant per tie with its offset, error bound and drift.
 */
#pragma once

#include "export/mark_feed.h"
#include "export/sink.h"
#include "formats/perfetto/marks.h"

/* Clock of the first merged file in ClockSnapshots; the others follow. */
#define PF_CLOCK_MERGED 65

/* Position in the ties of all merged files. */
struct pf_tie_cursor {
	const struct mark_origin *origins;
	size_t count;
	size_t next[EXPORT_MERGES_MAX];
};
void pf_tie_cursor_init(struct pf_tie_cursor *c, const struct mark_feed *marks);
/*
 * Writes ClockSnapshots of the ties before that trace time; the trace clock is `builtin` there.
 * Readers need all snapshots in order. 0 or -ENOMEM.
 */
int pf_put_ties(struct pf_tie_cursor *c, uint64_t before, uint32_t builtin, struct buf *out);

/* Writes the instants. 0 or -ENOMEM. */
int pf_marks_put_ties(struct pf_marks *m, const struct sink_env *env, struct buf *out);
