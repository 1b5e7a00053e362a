/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One source of marks that are sorted already: a merged file, or a profile. Its clock is tied to
 * the trace clock, and its marks are given out one by one, in the trace clock.
 *
 * A source is used by one thread, and stays where it is from its first use on.
 */
#pragma once

#include "marks/clock_map.h"
#include "marks/input_file.h"
#include "marks/sync_scan.h"
#include "marks/trace_file.h"
#include "trace/index.h"

/* How one source's clock was tied to the trace clock, and what came from it. */
struct mark_origin {
	const char *name;  /* of the file; borrowed */
	const char *clock; /* "MONOTONIC" ...; NULL: tied by clock_sync events */
	struct clock_sum sum;
	uint64_t bound; /* ns: of any of its events */
	size_t ties;
	const struct clock_point *points; /* the ties, in order; borrowed from the source */
	/* What its file says besides events: members of a dict; borrowed from the source. */
	struct text members;
};

/* One of the clock_sync events of all sources, in the trace clock. */
struct mark_sync {
	char *id; /* owned */
	uint64_t ts, issue_ts;
	uint64_t kernel_ts; /* of the mark of that id in the kernel's ring; 0: there is none */
	uint32_t source;
};

struct mark_syncs {
	struct mark_sync *all; /* owned */
	size_t count;
};
/* sync's id is not looked at: it becomes a copy of id. 0 or -ENOMEM. */
int mark_syncs_add(struct mark_syncs *s, const char *id, size_t len, const struct mark_sync *sync);
void mark_syncs_deinit(struct mark_syncs *s);

/* What the sources of an export share while they are read; all borrowed from who reads them. */
struct source_env {
	struct stream_index *index; /* gets the warnings */
	const struct stream_reader *reader;
	struct scratch *scratch;  /* is used until the last mark was fetched */
	struct sync_scan *kernel; /* read once a source has syncs */
	struct mark_syncs *syncs; /* the sources' are added */
	uint64_t bound_max;	  /* ns: a clock that is tied less closely is warned of */
};

struct mark_source {
	struct mark_origin origin;
	struct trace_file file; /* owned */
	struct clock_map map;	/* owned: from its clock to the trace's */
	struct mark next;	/* borrowed from file, until the next is fetched */
	unsigned class;		/* of next: mark_class() */
	bool have_next;
	bool placed; /* its marks have times of the trace already, and are in their order */
	uint64_t last_ts;
};

/*
 * Reads a merged file into s, which is all zeros and is to be given to mark_source_deinit in any
 * case, and ties its clock. merge and its name stay where they are. What is wrong with the file
 * becomes a warning of the index, and the trace incomplete: 0. -errno: memory, the scratch file or
 * the stream's own reading failed.
 */
int mark_source_read(struct mark_source *s, uint32_t number, const struct export_merge *merge,
		     const struct source_env *env, struct error *err);
void mark_source_deinit(struct mark_source *s);

/*
 * The next mark into its place: in the order of sort.h, its time in the trace clock and not before
 * the last one's. 1; 0: there is none; -errno.
 */
int mark_source_fetch(struct mark_source *s, struct error *err);

/* Warns of a file all of which is of another time than from first_ts to last_ts. 0 or -ENOMEM. */
int mark_source_warn_of_time(const struct mark_source *s, struct stream_index *index,
			     uint64_t first_ts, uint64_t last_ts);
