/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds one packet with a TrackEvent, part by part. */
#pragma once

#include "formats/perfetto/marks.h"

/* Fields of TrackEvent. */
enum {
	EVENT_CATEGORY_IIDS = 3,
	EVENT_ANNOTATIONS = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK = 11,
	EVENT_EXTRA_VALUES = 12,
	EVENT_CATEGORIES = 22,
	EVENT_NAME = 23,
	EVENT_COUNTER = 30,
	EVENT_EXTRA_TRACKS = 31,
	EVENT_DOUBLE_COUNTER = 44,
	EVENT_FLOWS = 47,
	EVENT_LAST_FLOWS = 48,
};

enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 }; /* values of EVENT_TYPE */

/* Between these calls, append fields to m->event, and newly interned strings to m->fresh. */
void pf_event_begin(struct pf_marks *m, unsigned type, uint64_t track);
int pf_event_end(struct pf_marks *m, uint64_t ts, struct buf *out);

void pf_event_put_name(struct pf_marks *m, struct text name);
/* A list with commas. */
void pf_event_put_categories(struct pf_marks *m, struct text cats);
/* All parts of a mark but the phase; the second without the name, too. */
void pf_event_put(struct pf_marks *m, const struct mark *mark);
void pf_event_put_unnamed(struct pf_marks *m, const struct mark *mark);
/* Appends the packets of a counter: counters.c. -EINVAL: it has no number; or another -errno. */
int pf_marks_put_counter(struct pf_marks *m, const struct mark *mark, struct buf *out);
/* The same, for a counter of the machine. */
int pf_marks_put_polled(struct pf_marks *m, const struct mark *mark, struct buf *out);
/* Writes TrackEvent.callstack: that stack of the mark, if its frames are known. */
void pf_put_stack(const struct stack_frames *f, const struct mark *mark, enum mark_part part,
		  struct buf *event);
