/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The error of a machine's CLOCK_REALTIME, as its time daemon states it to the kernel
 * (adjtimex(2)). Two machines that know this are tied without an exchange.
 */
#pragma once

#include <stdbool.h>
#include <sys/timex.h>

#include "trace/host_clock.h"

struct true_time {
	uint64_t boot;	/* ns: CLOCK_BOOTTIME */
	uint64_t utc;	/* ns: CLOCK_REALTIME at that time; 0: not synchronised */
	uint64_t bound; /* ns: largest error of utc */
};

/* state: what adjtimex() returned. before, after: CLOCK_BOOTTIME around the call. */
void true_time_take(struct true_time *ret, const struct timex *t, int state, uint64_t before,
		    uint64_t after);
void true_time_read(struct true_time *ret);
/* False: one of the machines is not synchronised. */
bool true_time_tie(struct host_tie *ret, const struct true_time *near, const struct true_time *far);
