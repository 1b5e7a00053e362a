/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Applications' marks as TrackEvents. What the Trace Event Format has a phase for and
 * Perfetto a message for becomes that; docs/perfetto.md has the table.
 */
#pragma once

#include "formats/perfetto/packets.h"
#include "formats/perfetto/perf_samples.h"
#include "formats/perfetto/tracks.h"
#include "marks/stack_frames.h"

#define PF_NAME_BYTES_MAX UINT32_C(1024) /* of a name that is kept or made */

struct pf_marks {
	enum pf_clock clock;
	struct task_table *tasks; /* borrowed */
	struct pf_tracks tracks;
	struct stack_frames frames;
	struct pf_perf perf;
	struct pf_interner categories, names, keys;
	struct buf event, fresh; /* of the packet that is being made */
	uint64_t left_out;	 /* marks that nothing can be made of */
};

void pf_marks_init(struct pf_marks *m, enum pf_clock clock, struct task_table *tasks);
void pf_marks_deinit(struct pf_marks *m);
/* What comes goes to another file: there nothing is interned or described yet. */
void pf_marks_restart(struct pf_marks *m);
/* Appends its packets to out. 0 or -ENOMEM. */
int pf_marks_put(struct pf_marks *m, const struct mark *mark, struct buf *out);
/* What an id means, as the seed of a uuid: of the whole machine or of one process. */
uint64_t pf_mark_id(char kind, const struct mark *mark, bool usually_local, struct text cat,
		    struct text id);
/* An instant of no process, on a track of that name. */
int pf_marks_put_shared(struct pf_marks *m, const struct mark *mark, struct text track,
			struct buf *out);
/* Names that were told, but are of no mark's process or thread yet. */
int pf_marks_put_names(struct pf_marks *m, struct buf *out);
