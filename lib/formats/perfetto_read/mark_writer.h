/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inside of marks.c: its state, and the parts that each kind of packet goes to. */
#pragma once

#include "formats/perfetto_read/interned.h"
#include "formats/perfetto_read/marks.h"
#include "formats/perfetto_read/sections.h"
#include "marks/frame_ids.h"

enum { SECTION_EVENTS, SECTION_SAMPLES, SECTION_FRAMES };

struct pf_mark_writer {
	struct sections out;
	struct known_room room;
	struct interned_all interned;
	struct known_table tracks; /* by uuid; of mark_tracks.c */
	struct known_table flows;  /* by id: struct open_flow */
	struct frame_ids frames;
	size_t frame_bytes;		      /* of their names */
	struct buf cats, args, scratch, name; /* of the mark that is being made */
	/* A slice that was begun last, if nothing came since, as mark_pack has it. */
	struct buf held;
	uint64_t held_track;
	uint64_t count, left_out;
	const char *why_left_out;
	unsigned searches; /* of mark_tracks.c, for threads that only their uuid tells */
};

/* Returns 0, so that what leaves something out can go on with it. */
int pf_mark_leave_out(struct pf_mark_writer *w, uint64_t count, const char *why);
/* Writes it. 0, also where it is left out; -EDQUOT, -EIO ... */
int pf_mark_put(struct pf_mark_writer *w, const struct mark *mark, struct error *err);
/* What is held is written. */
int pf_mark_release(struct pf_mark_writer *w, struct error *err);

/* The frame of that name within another, written where it is new; 0: no more are taken. */
int pf_mark_frame(struct pf_mark_writer *w, uint32_t parent, struct text name, struct text module,
		  uint32_t *ret, struct error *err);

/* mark_tracks.c: what tracks are. */
enum mark_place_kind {
	PLACE_NONE,    /* never described */
	PLACE_SKIP,    /* of the trace itself, no application's */
	PLACE_THREAD,  /* a process's own track: tid 0 */
	PLACE_COUNTER, /* name: with the unit */
	PLACE_TIME,
	PLACE_INSTRUCTIONS,
	PLACE_CONTEXTS, /* of a thread */
	PLACE_INSTANTS, /* of all processes */
	PLACE_MEMORY,	/* dumps of all processes */
	PLACE_OWN,
};
struct mark_place {
	enum mark_place_kind kind;
	bool global;		/* of no process */
	int32_t pid, tid;	/* of what it is beneath; tid 0: a process */
	struct text name, unit; /* borrowed */
};
/* A TrackDescriptor. */
int mark_tracks_take(struct pf_mark_writer *w, const struct wire_field *descriptor,
		     struct error *err);
void mark_tracks_find(const struct pf_mark_writer *w, uint64_t uuid, struct mark_place *ret);

/* mark_events.c: a TrackEvent; mark_samples.c: a PerfSample. */
int mark_events_take(struct pf_mark_writer *w, const struct pf_packet *p, const struct interned *in,
		     struct error *err);
int mark_samples_take(struct pf_mark_writer *w, const struct pf_packet *p,
		      const struct interned *in, struct error *err);
