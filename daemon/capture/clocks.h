/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Readings of the machine's clocks that belong together. */
#pragma once

#include "stream/writer.h"

enum clock_phase { CLOCK_PHASE_START, CLOCK_PHASE_PERIODIC, CLOCK_PHASE_END };

#define CLOCKS_MAX 5

struct clock_reading {
	uint32_t clock;		       /* clockid */
	uint64_t value, before, after; /* ns; the latter two on CLOCK_BOOTTIME */
};

struct clock_snapshot {
	struct clock_reading readings[CLOCKS_MAX];
	unsigned count;
};

/* REALTIME, MONOTONIC, MONOTONIC_RAW, TAI, and BOOTTIME itself; each the best of a few tries. */
void clocks_read(struct clock_snapshot *ret);
int clocks_write(const struct clock_snapshot *s, struct stream_writer *w, enum clock_phase phase);
