/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes application marks as TrackEvents. docs/perfetto.md maps the phases of the Trace Event
 * Format to messages.
 */
#pragma once

#include "formats/perfetto/packets.h"
#include "formats/perfetto/perf_samples.h"
#include "formats/perfetto/tracks.h"
#include "marks/stack_frames.h"

#define PF_NAME_BYTES_MAX UINT32_C(1024) /* limit of names, both stored and built */

struct pf_marks {
	enum pf_clock clock;
	struct task_table *tasks; /* borrowed */
	struct pf_tracks tracks;
	struct stack_frames frames;
	struct pf_perf perf;
	struct pf_interner categories, names, keys;
	struct buf event, fresh; /* of the packet being built */
	uint64_t left_out;	 /* marks that have no representation */
	uint64_t numberless;	 /* values of counters that are no numbers */
};

void pf_marks_init(struct pf_marks *m, enum pf_clock clock, struct task_table *tasks);
void pf_marks_deinit(struct pf_marks *m);
/* Begins another file: nothing is interned or described there yet. */
void pf_marks_restart(struct pf_marks *m);
/* Appends the mark's packets to out. 0 or -ENOMEM. */
int pf_marks_put(struct pf_marks *m, const struct mark *mark, struct buf *out);
/* Warns of marks that found no room. 0 or -ENOMEM. */
int pf_marks_warn(const struct pf_marks *m, struct stream_index *index);
/* Hash of an id, as the seed of a uuid: global or local to a process. */
uint64_t pf_mark_id(char kind, const struct mark *mark, bool usually_local, struct text cat,
		    struct text id);
/* An instant without a process, on a track of that name. */
int pf_marks_put_shared(struct pf_marks *m, const struct mark *mark, struct text track,
			struct buf *out);
/* Writes names of processes and threads that have no mark. tied: readers know the clock. */
int pf_marks_put_names(struct pf_marks *m, bool tied, struct buf *out);
