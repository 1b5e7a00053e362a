/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The events of one CPU on their way into a FtraceEventBundle.
 *
 * Compact sched: a sched_switch becomes five varints in parallel arrays. The
 * reader then infers prev_pid, prev_comm and prev_prio from the switch before
 * it on that CPU, and the waker of a sched_waking from the task that runs.
 * So the compact form is used only where that inference is true; the first
 * switch of a CPU, the first after a loss, and every one whose past does not
 * match are written plain. So is one at the same time as the event before it:
 * of equal times, the compact one comes first.
 */
#pragma once

#include "formats/perfetto/rest.h"

/* FtraceEventBundle's field numbers. */
enum {
	BUNDLE_CPU = 1,
	BUNDLE_EVENT = 2,
	BUNDLE_LOST_EVENTS = 3,
	BUNDLE_COMPACT_SCHED = 4,
	BUNDLE_CLOCK = 5,
	BUNDLE_SINCE = 10, /* previous_bundle_end_timestamp */
	BUNDLE_GENERIC_DESCRIPTORS = 11,
};

/* CompactSched's field numbers. */
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

#define PF_COMM_SIZE 16	   /* TASK_COMM_LEN */
#define PF_COMM_SLOTS 1024 /* for names that a bundle interns; a power of two */
#define PF_COMMS_MAX (PF_COMM_SLOTS / 2)

#define PF_NO_EVENT UINT32_MAX

/* Where sched_switch and sched_waking keep what the compact form needs; resolved once. */
struct pf_sched_layout {
	uint32_t switch_id, waking_id; /* PF_NO_EVENT: no compact form for it */
	struct {
		uint32_t prev_comm, prev_pid, prev_prio, prev_state, prev_state_size;
		uint32_t next_comm, next_pid, next_prio, size;
	} sw;
	struct {
		uint32_t comm, pid, prio, target_cpu, size;
	} wk;
	bool swap;
};

/* table NULL: no compact form for any. */
void pf_sched_layout_init(struct pf_sched_layout *l, const struct event_table *table,
			  bool big_endian);

struct pf_running {
	bool known;
	int32_t pid, prio;
	char comm[PF_COMM_SIZE];
};

struct pf_bundle {
	uint32_t cpu;
	bool lost;	   /* events are missing before this bundle's first */
	bool first;	   /* nothing of this CPU is in the file yet */
	uint64_t since_ts; /* of the CPU's last event in an earlier file; 0: there is none */
	uint64_t start_ts; /* of the first event; 0: empty */
	uint64_t end_ts;
	struct buf events; /* FtraceEvents as field 2, plain */
	/* Packed varints of CompactSched, by its field number. */
	struct buf compact[PF_COMPACT_FIELDS];
	uint32_t compact_count, compact_room; /* events that are in there, that may be added */
	uint64_t switch_ts, waking_ts;	      /* the last of each: timestamps are deltas */
	uint32_t comm_count;
	uint16_t comm_index[PF_COMM_SLOTS]; /* index + 1 into comms, by hash */
	char (*comms)[PF_COMM_SIZE];	    /* owned */
	/* Generic events in here, whose descriptors must come along. */
	const struct pf_event **generics; /* owned array */
	size_t generic_count, generic_cap;
	struct pf_running running;
	struct pf_flags flags;
	struct buf rest, flag_changes; /* of all events in here */
	size_t aside;		       /* bytes of names, of rest and of what that refers to */
	uint64_t lost_count;	       /* before this bundle; UINT64_MAX: not known */
};

int pf_bundle_init(struct pf_bundle *b, uint32_t cpu);
void pf_bundle_deinit(struct pf_bundle *b);

/* Returns 0, -EBADMSG (a damaged record, written as far as it goes), -ENOMEM. */
int pf_bundle_add(struct pf_bundle *b, struct pf_schema *s, const struct pf_sched_layout *layout,
		  const struct trace_event *ev);
/* Events of this CPU are missing between the last added and the next. count UINT64_MAX: not known.
 */
void pf_bundle_lost(struct pf_bundle *b, uint64_t count);

/* What comes is of another file; to be called when it is empty. */
void pf_bundle_restart(struct pf_bundle *b);

#define PF_BUNDLE_BYTES (48U << 10)	    /* at most, */
#define PF_BUNDLES_BYTES (8U << 20)	    /* and all CPUs' together */
#define PF_BUNDLE_SPAN UINT64_C(1000000000) /* ns */

/* About the bytes that it will be. */
static inline size_t pf_bundle_bytes(const struct pf_bundle *b)
{
	return b->events.len + (size_t)b->compact_count * 8 + b->aside;
}

/* Large or old enough to be written. */
static inline bool pf_bundle_is_ripe(const struct pf_bundle *b, size_t bytes_max, uint64_t now_ts)
{
	return b->start_ts &&
	       (pf_bundle_bytes(b) >= bytes_max || now_ts - b->start_ts >= PF_BUNDLE_SPAN);
}

/*
 * Appends the bundle's packet, with what the schema has to tell since the last one, and empties
 * both. clock 0: boot. Returns 0, or -ENOMEM: nothing was appended.
 */
int pf_bundle_finish(struct pf_bundle *b, unsigned clock, struct pf_schema *s, struct buf *out);
