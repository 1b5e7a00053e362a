/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One source of sorted marks: a merged file or a profile. Its clock is tied to the trace clock, and
 * its marks are returned one by one in the trace clock.
 *
 * Used by one thread. Must not move in memory after its first use.
 */
#pragma once

#include "marks/clock_map.h"
#include "marks/input_file.h"
#include "marks/trace_file.h"
#include "trace/index.h"

/* The tie of a source's clock to the trace clock, and facts about its file. */
struct mark_origin {
	const char *name;  /* name of the file; borrowed */
	const char *clock; /* "MONOTONIC" ...; NULL: tied by clock_sync events */
	struct clock_sum sum;
	uint64_t bound; /* ns: largest error of its times */
	size_t ties;
	const struct clock_point *points; /* the clock ties, in order; borrowed from the source */
	/* Other members of the file: members of an object; borrowed from the source. */
	struct text members;
};

/* A clock_sync event of any source, in the trace clock. */
struct mark_sync {
	char *id; /* owned */
	uint64_t ts, issue_ts;
	uint64_t kernel_ts; /* time of the kernel ring's mark with this id; 0: none */
	uint32_t source;
};

struct mark_syncs {
	struct mark_sync *all; /* owned */
	size_t count;
};
/* Adds a copy of sync with a copy of id. 0 or -ENOMEM. */
int mark_syncs_add(struct mark_syncs *s, const char *id, size_t len, const struct mark_sync *sync);
void mark_syncs_deinit(struct mark_syncs *s);

/* State shared by the sources of an export while they are read; borrowed from the caller. */
struct source_env {
	struct stream_index *index; /* receives warnings, and sync marks once a source has ids */
	const struct stream_reader *reader;
	struct scratch *scratch;  /* in use until the last mark was fetched */
	struct mark_syncs *syncs; /* receives the sources' clock_sync events */
	uint64_t bound_max;	  /* ns: warn of clocks tied with a larger error */
};

struct mark_source {
	struct mark_origin origin;
	struct trace_file file; /* owned */
	struct clock_map map;	/* owned: maps its clock to the trace clock */
	struct mark next;	/* borrowed from file until the next fetch */
	unsigned class;		/* mark_class() of next */
	bool have_next;
	bool named;  /* its clock was given, and not guessed */
	bool placed; /* times are already in the trace clock and in order */
	uint64_t last_ts;
};

/*
 * Reads a merged file into s and ties its clock. s must be zeroed, and passed to mark_source_deinit
 * in any case. merge and its name must outlive s. A fault of the file becomes a warning, marks the
 * trace incomplete, and returns 0. -errno: memory, the scratch file or reading the stream failed.
 */
int mark_source_read(struct mark_source *s, uint32_t number, const struct export_merge *merge,
		     const struct source_env *env, struct error *err);
void mark_source_deinit(struct mark_source *s);

/*
 * Fetches the next mark into s->next: in the order of sort.h, in the trace clock, monotonic. 1; 0:
 * no more; -errno.
 */
int mark_source_fetch(struct mark_source *s, struct error *err);

/* Warns if the whole file lies outside first_ts to last_ts. 0 or -ENOMEM. */
int mark_source_warn_of_time(const struct mark_source *s, struct stream_index *index,
			     uint64_t first_ts, uint64_t last_ts);
