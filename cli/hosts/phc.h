/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A network card's PTP hardware clock, as /dev/ptp0. It does not say how wrong it is: the user
 * states by how much two machines' clocks differ.
 */
#pragma once

#include "base/error.h"
#include "true_time.h"

/* Parses "/dev/ptp0,200ns". 0 or -errno. */
int phc_parse(const char *text, uint64_t *ret_bound, struct error *err);
/* The same, and opens the clock. Returns a descriptor or -errno. */
int phc_open(const char *text, uint64_t *ret_bound, struct error *err);
/* Reads it. The bound is that of the reading alone. utc 0: it can't be read, or fd is negative. */
void phc_read(int fd, struct true_time *ret);
/*
 * Our clock at the time that the far machine's PHC showed, out of our readings before and after it.
 * bound: by how much both PHCs differ. False: they differ by more than that, or one was not read.
 */
bool phc_tie(struct host_tie *ret, const struct true_time *before, const struct true_time *after,
	     const struct true_time *far, uint64_t bound);
