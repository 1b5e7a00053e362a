/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Readings of several clocks, taken together. */
#pragma once

#include <stdbool.h>

#include "stream/writer.h"

enum clock_phase { CLOCK_PHASE_START, CLOCK_PHASE_PERIODIC, CLOCK_PHASE_END, CLOCK_PHASE_SYNC };

#define CLOCKS_MAX 6

struct clock_reading {
	uint32_t clock;		       /* clockid, or MARK_CLOCK_TSC */
	uint64_t value, before, after; /* ns; before and after are on CLOCK_BOOTTIME */
};

/* A mark that was written between two readings of CLOCK_BOOTTIME. */
struct clock_sync_mark {
	char *id;
	uint64_t before, after; /* ns */
};

struct clock_snapshot {
	struct clock_reading readings[CLOCKS_MAX];
	unsigned count;
	const struct clock_sync_mark *sync; /* for CLOCK_PHASE_SYNC; borrowed */
};

/*
 * Reads REALTIME, MONOTONIC, MONOTONIC_RAW, TAI, BOOTTIME and x86's time stamp counter, each the
 * best of a few tries.
 */
void clocks_read(struct clock_snapshot *ret);
/*
 * Returns a descriptor that becomes readable when CLOCK_REALTIME is set or the machine resumes;
 * -errno. clocks_were_set() reports, and clears, whether that happened.
 */
int clocks_watch(void);
bool clocks_were_set(int watch);
int clocks_write(const struct clock_snapshot *s, struct stream_writer *w, enum clock_phase phase);
