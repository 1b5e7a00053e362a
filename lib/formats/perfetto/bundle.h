/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Collects the events of one CPU into a FtraceEventBundle. bundle.c explains the compact form. */
#pragma once

#include "base/table.h"
#include "formats/perfetto/rest.h"

/* Field numbers of FtraceEventBundle. */
enum {
	BUNDLE_CPU = 1,
	BUNDLE_EVENT = 2,
	BUNDLE_LOST_EVENTS = 3,
	BUNDLE_COMPACT_SCHED = 4,
	BUNDLE_CLOCK = 5,
	BUNDLE_SINCE = 10, /* previous_bundle_end_timestamp */
	BUNDLE_GENERIC_DESCRIPTORS = 11,
};

/* Field numbers of CompactSched. */
enum {
	SWITCH_TIMESTAMP = 1,
	SWITCH_PREV_STATE = 2,
	SWITCH_NEXT_PID = 3,
	SWITCH_NEXT_PRIO = 4,
	INTERN_TABLE = 5,
	SWITCH_NEXT_COMM = 6,
	WAKING_TIMESTAMP = 7,
	WAKING_PID = 8,
	WAKING_TARGET_CPU = 9,
	WAKING_PRIO = 10,
	WAKING_COMM = 11,
	WAKING_FLAGS = 12,
	PF_COMPACT_FIELDS
};

#define PF_COMM_SIZE 16	 /* TASK_COMM_LEN */
#define PF_COMMS_MAX 512 /* interned names of a bundle */

#define PF_NO_EVENT UINT32_MAX

/* Field offsets of sched_switch and sched_waking for the compact form; resolved once. */
struct pf_sched_layout {
	uint32_t switch_id, waking_id; /* PF_NO_EVENT: no compact form of this event */
	struct {
		uint32_t prev_comm, prev_pid, prev_prio, prev_state, prev_state_size;
		uint32_t next_comm, next_pid, next_prio, size;
	} sw;
	struct {
		uint32_t comm, pid, prio, target_cpu, size;
	} wk;
	bool swap;
	bool plain; /* no event is compact */
};

void pf_sched_layout_init(struct pf_sched_layout *l, const struct event_table *table,
			  bool big_endian, bool plain);

/* A name in a bundle's intern_table. */
struct pf_comm {
	char name[PF_COMM_SIZE];
	uint16_t number; /* index + 1; 0: free slot */
};
DECLARE_TABLE(pf_comms, struct pf_comm);

/* The task that readers take for running: that of the CPU's last switch. */
struct pf_running {
	bool known;
	int32_t pid, prio;
	char comm[PF_COMM_SIZE];
	int32_t other;	   /* another task, which has made an event since, */
	uint64_t other_ts; /* the time of its first one; 0: none has */
};

struct pf_bundle {
	uint32_t cpu;
	bool begun; /* after pf_bundle_init() */
	bool lost;  /* events are missing before the first event */
	bool first; /* the file has nothing of this CPU yet */
	/*
	 * Time since when nothing is missing: of the CPU's last event in an earlier file; 0: of the
	 * recording's start; UINT64_MAX: of the first event.
	 */
	uint64_t since_ts;
	uint64_t start_ts; /* time of the first event; 0: empty */
	uint64_t end_ts;
	struct buf events; /* FtraceEvents as field 2, in plain form */
	/* By field number of CompactSched: packed varints; INTERN_TABLE: whole fields. */
	struct buf compact[PF_COMPACT_FIELDS];
	uint32_t compact_count, compact_room; /* events in there; events that still fit */
	uint64_t switch_ts, waking_ts;	      /* last time of each kind: timestamps are deltas */
	struct pf_comms comms;		      /* the names in compact[INTERN_TABLE] */
	/* Generic events used here; their descriptors must be in the bundle. */
	const struct pf_event **generics; /* owned array */
	size_t generic_count, generic_cap;
	struct pf_running running;
	struct pf_flags flags;
	struct buf rest, flag_changes; /* for all events of the bundle */
	size_t aside;		       /* bytes of names, of rest and of what rest refers to */
	uint64_t lost_count;	       /* events lost before this bundle; UINT64_MAX: unknown */
};

/* late: the CPU's events before the first one were overwritten, or are in another recording. */
void pf_bundle_init(struct pf_bundle *b, uint32_t cpu, bool late);
void pf_bundle_deinit(struct pf_bundle *b);

/* Returns 0; -EBADMSG: the record is damaged, its valid part was added; -ENOMEM. */
int pf_bundle_add(struct pf_bundle *b, struct pf_schema *s, const struct pf_sched_layout *layout,
		  const struct trace_event *ev);
/* Events of this CPU are missing before the next one. count UINT64_MAX: unknown. */
void pf_bundle_lost(struct pf_bundle *b, uint64_t count);

/* Begins another file. The bundle must be empty. */
void pf_bundle_restart(struct pf_bundle *b);

#define PF_BUNDLE_BYTES (48U << 10)	    /* limit of one bundle */
#define PF_BUNDLES_BYTES (8U << 20)	    /* limit of all CPUs' bundles together */
#define PF_BUNDLE_SPAN UINT64_C(1000000000) /* ns */

/* Estimated size of the packet. */
static inline size_t pf_bundle_bytes(const struct pf_bundle *b)
{
	return b->events.len + (size_t)b->compact_count * 8 + b->aside;
}

/* Whether the bundle is large or old enough to be written. */
static inline bool pf_bundle_is_ripe(const struct pf_bundle *b, size_t bytes_max, uint64_t now_ts)
{
	return b->start_ts &&
	       (pf_bundle_bytes(b) >= bytes_max || now_ts - b->start_ts >= PF_BUNDLE_SPAN);
}

/*
 * Appends the bundle's packet, including the schema's new data since the last one, and empties
 * both. clock 0: boot. Returns 0, or -ENOMEM: nothing was appended.
 */
int pf_bundle_finish(struct pf_bundle *b, unsigned clock, struct pf_schema *s, struct buf *out);
