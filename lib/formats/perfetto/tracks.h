/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tracks of applications' marks: of processes and threads as their marks name them,
 * and of their own, beneath these. Each is described right before its first event, and
 * again only where its process or thread gets another name.
 *
 * A track goes by its uuid, the hash of what it is. What is remembered is bounded:
 * of what was described and has nothing open more than TRACKS_MAX is forgotten, and
 * perhaps described again.
 */
#pragma once

#include "base/table.h"
#include "formats/perfetto/message.h"
#include "marks/mark.h"

#define PF_TRACKS_MAX (1U << 18)
#define PF_PENDING_FLOWS 8

/* What is known of a thread, or of a process. */
struct pf_actor {
	int32_t pid, tid; /* tid 0: a process */
	char *name;	  /* owned; NULL: none was given */
	char *labels;	  /* owned; of a process */
	int32_t rank;
	bool has_rank;
	bool changed; /* to be described anew */
	/* Of the complete mark that was last: when it was said to begin, what was written, its end.
	 */
	uint64_t complete_ts, complete_written, complete_end;
	uint64_t flows[PF_PENDING_FLOWS]; /* that end in the next slice */
	unsigned flow_count;
};

struct pf_track {
	uint64_t uuid;	  /* 0: a free place */
	uint64_t same_as; /* the uuid of the track that is meant; 0: this one */
	uint32_t open;	  /* slices */
	bool described;
	struct pf_actor *actor; /* owned; of a process's or thread's track */
};

DECLARE_TABLE(pf_track_slots, struct pf_track);

struct pf_tracks {
	struct pf_track_slots all;
	bool ordered; /* it was said that ranks count */
};
void pf_tracks_deinit(struct pf_tracks *t);
/* None is described. */
void pf_tracks_restart(struct pf_tracks *t);

/* What a track is, as its uuid. */
uint64_t pf_track_uuid(char kind, int64_t a, int64_t b, struct text text, uint64_t seed);

/* Valid until the next call. NULL: no memory, or too many have something open. */
struct pf_track *pf_track_get(struct pf_tracks *t, uint64_t uuid);
/* The track of a process (tid 0) or a thread; not described by that. */
struct pf_track *pf_track_of(struct pf_tracks *t, int32_t pid, int32_t tid);

struct pf_track_form {
	uint64_t parent; /* 0: none */
	struct text name;
	enum {
		PF_TRACK_SLICES,
		PF_TRACK_COUNTER,
		PF_TRACK_THREAD_TIME,
		PF_TRACK_INSTRUCTIONS
	} kind;
	unsigned unit;	       /* of a counter: CounterDescriptor.Unit; 0: none */
	struct text unit_name; /* len 0: none */
	unsigned ordering;     /* TrackDescriptor.ChildTracksOrdering */
	int32_t rank;	       /* 0: none */
};
/* Each appends whole packets to out. Described already: nothing. 0 or -errno. */
int pf_track_describe(struct pf_track *track, const struct pf_track_form *form, struct buf *out);
/* Its process's, too. ret_uuid: the thread's. */
int pf_track_describe_actor(struct pf_tracks *t, int32_t pid, int32_t tid, uint64_t *ret_uuid,
			    struct buf *out);
/* Of those that were named, but have no event. */
int pf_tracks_describe_rest(struct pf_tracks *t, struct buf *out);
