/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tracks of application marks: processes and threads as named by their marks, and the marks' own
 * tracks below them. A track is described right before its first event, and again if its process or
 * thread is renamed.
 *
 * Readers resolve the thread of a track at the time of its description. So it has the time of the
 * mark, at which the thread lived: without a time it would come before the event of its birth, and
 * that would begin a second thread.
 *
 * A track's uuid is the hash of its identity. Memory is bounded: if there are PF_TRACKS_MAX, those
 * that nothing holds are forgotten, and described again if needed. As only three quarters can be
 * held, each such sweep makes room for as many new tracks as a quarter.
 */
#pragma once

#include "base/table.h"
#include "formats/perfetto/message.h"
#include "marks/mark.h"
#include "trace/task_table.h"

#define PF_TRACKS_MAX (1U << 18)
#define PF_TRACKS_HELD_MAX (PF_TRACKS_MAX / 4 * 3)
#define PF_PENDING_FLOWS 8

/* State of a thread or process. */
struct pf_actor {
	int32_t pid, tid; /* tid 0: the process */
	char *name;	  /* owned; NULL: none was given */
	char *labels;	  /* owned; of a process */
	int32_t rank;
	bool has_rank;
	bool changed; /* must be described again */
	/* The last complete mark: its own begin, the begin written, its end. */
	uint64_t complete_ts, complete_written, complete_end;
	uint64_t flows[PF_PENDING_FLOWS]; /* flows that end in the next slice */
	unsigned flow_count;
};

struct pf_track {
	uint64_t uuid;	  /* 0: free slot */
	uint64_t same_as; /* uuid of the track it is linked to; 0: itself */
	uint32_t open;	  /* number of open slices */
	bool described, held;
	struct share_owner holder;
	struct pf_actor *actor; /* owned; for the track of a process or thread */
};

DECLARE_TABLE(pf_track_slots, struct pf_track);

struct pf_tracks {
	struct pf_track_slots all;
	struct shares shares; /* held tracks */
	bool ordered;	      /* the root asks for ranks */
	uint64_t ts;	      /* of the descriptions to come; 0: unknown */
	uint32_t clock;
};
void pf_tracks_deinit(struct pf_tracks *t);
/* Begins another file: no track is described there. */
void pf_tracks_restart(struct pf_tracks *t);

/* The uuid of a track with this identity. */
uint64_t pf_track_uuid(char kind, int64_t a, int64_t b, struct text text, uint64_t seed);

/* Valid until the next call. NULL: out of memory. */
struct pf_track *pf_track_get(struct pf_tracks *t, uint64_t uuid);
/* The track of a process (tid 0) or thread; does not describe it. */
struct pf_track *pf_track_of(struct pf_tracks *t, int32_t pid, int32_t tid);

/*
 * Keeps a track that can't be rebuilt: it has open slices, or a name or flows to be written. 0;
 * -ENOSPC: the mark's program holds too many; -ENOMEM.
 */
int pf_track_hold(struct pf_tracks *t, struct pf_track *track, const struct mark *by);
/* Allows a track to be forgotten if nothing needs it any more. */
void pf_track_release(struct pf_tracks *t, struct pf_track *track);

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
/* Appends whole packets to out, unless already described. 0 or -errno. */
int pf_track_describe(const struct pf_tracks *t, struct pf_track *track,
		      const struct pf_track_form *form, struct buf *out);
/* Also describes its process. ret_uuid: the thread's. */
int pf_track_describe_actor(struct pf_tracks *t, int32_t pid, int32_t tid, uint64_t *ret_uuid,
			    struct buf *out);
/* Describes the tracks that have a name but no event. tasks: to find the time of each, or NULL. */
int pf_tracks_describe_rest(struct pf_tracks *t, struct task_table *tasks, struct buf *out);
