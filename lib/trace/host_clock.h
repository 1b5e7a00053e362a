/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The clock of a recorded machine, tied to the clock of the machine that asked for the recording.
 * Both are CLOCK_BOOTTIME. A tie is one exchange: the asking machine noted its time, the recorded
 * one answered with its own, the asking machine noted its time again. The truth lies between.
 *
 * A line through the best tie of each part of the recording is the clock's offset and drift. Ties
 * that are too wrong for the time between them tell no drift. What the line may miss is bounded
 * part by part: within a part the error is taken for linear, and it lies between the bounds of each
 * tie. Its largest value at both ends of the part, and what a quartz may wander within the part, is
 * the bound. So it is never smaller than the error, however the exchanges were delayed, if within a
 * part the rate of neither clock changes by more than HOST_WANDER_PPM.
 *
 * If both machines know how far their CLOCK_REALTIME is from UTC, each exchange also makes a tie
 * whose bound is the sum of both errors, however long the exchange took. If both have a clock of
 * their network card that PTP keeps, each exchange makes a third tie.
 */
#pragma once

#include "stream/reader.h"
#include "trace/trace_info.h"

#define HOST_WANDER_PPM 1
/* A larger drift is no clock's: the ties lie. */
#define HOST_DRIFT_MAX_PPM 1000
#define HOST_TIES_MAX 4096
#define HOST_LABEL_BYTES 33 /* with its end */
#define HOST_TIMELINE_BYTES 16

struct host_tie {
	uint64_t far, near; /* ns: the recorded machine's time, the asking one's */
	uint64_t bound;	    /* ns: largest error of `near` */
};

struct host_ties {
	struct host_tie *items; /* owned; in order of time */
	size_t count, cap;
};

enum host_tie_kind {
	TIES_EXCHANGES,
	TIES_UTC, /* by both machines' synchronised CLOCK_REALTIME */
	TIES_PHC, /* by the clocks of both machines' network cards */
	TIE_KINDS,
};

/* near = ((far * mult) >> shift) + offset */
struct host_clock {
	uint32_t mult, shift;
	int64_t offset;
	uint64_t bound;	  /* ns */
	double drift;	  /* ppb: how much faster the asking machine's clock runs */
	bool drift_known; /* otherwise 0 is taken for it, and the bound allows for another one */
	bool by_wall;	  /* tied by both machines' time of day: the bound is unknown */
	enum host_tie_kind by;
};

/* A stream's words on its machine. */
struct host_origin {
	char label[HOST_LABEL_BYTES];	       /* "": none */
	uint8_t timeline[HOST_TIMELINE_BYTES]; /* the asking machine's boot */
	uint64_t start; /* ns, by the asking machine: when all machines recorded; 0: unknown */
	bool tied;
	bool wall_known;
	int64_t wall;		 /* ns: CLOCK_REALTIME - CLOCK_BOOTTIME */
	uint64_t first, last;	 /* ns: its first and last reading of CLOCK_BOOTTIME */
	uint32_t cpus;		 /* all that it may have recorded are below */
	uint32_t cpus_seen;	 /* so are those with sub-buffers or samples */
	const char *lacks;	 /* what its chunk HOST should say, and why not; NULL: nothing */
	struct host_clock clock; /* if tied */
};

/* Keeps a tie; of too many, every second one. 0 or -ENOMEM. */
int host_ties_add(struct host_ties *ties, const struct host_tie *tie);
/*
 * from, to: the recording's begin and end, by the recorded machine. -ENODATA: no tie; -EBADMSG:
 * the ties contradict each other.
 */
int host_clock_fit(struct host_clock *ret, const struct host_tie *ties, size_t count, uint64_t from,
		   uint64_t to);
/*
 * Fits each kind of ties for itself. Other kinds than exchanges may be empty. They count if their
 * bound is smaller and the exchanges do not contradict them.
 */
int host_clock_choose(struct host_clock *ret, const struct host_ties ties[TIE_KINDS], uint64_t from,
		      uint64_t to);
uint64_t host_clock_apply(const struct host_clock *c, uint64_t far);

/* Labels are printed and name files: other characters than letters, digits, ".-_" become "_". */
void host_label_tidy(char *label);
/*
 * Reads chunks HOST, CLOCKS and HEADER. A chunk HOST that can't be read, or whose ties contradict
 * each other, is no error: `lacks` says so. 0 or -errno.
 */
int host_origin_read(struct host_origin *ret, int fd, struct error *err);
/* Appends the chunk HOST, with the origin's label, timeline and start, behind the last whole chunk;
 * the file ends there. 0 or -errno. */
int host_origin_append(int fd, const struct host_origin *origin,
		       const struct host_ties ties[TIE_KINDS], struct error *err);

/* Moves all times of a loaded stream. -EINVAL: its trace clock is not "boot". */
int host_clock_move(const struct host_clock *c, struct trace_info *info, struct error *err);
