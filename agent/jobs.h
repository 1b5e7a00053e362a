/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Orders that were taken, in the order of their start. They are followed one after another, so one
 * whose time comes while another is recorded waits for that.
 */
#pragma once

#include <stdbool.h>

#include "agent/place.h"
#include "fleet/order.h"

#define JOBS_MAX 8

struct job {
	struct order order;
	uint64_t start_ns;	   /* CLOCK_BOOTTIME */
	const struct place *place; /* that shows it; NULL: a URL. Only compared */
};

struct jobs {
	struct job items[JOBS_MAX];
	size_t count;
	bool is_recording; /* the first */
	bool is_withdrawn; /* the one that is recorded: its results are not wanted */
};

/* Moves the job in, behind the one that is recorded. There must be room. */
void jobs_add(struct jobs *jobs, struct job *job);
/* i: of the first, if it is recorded: it has ended. */
void jobs_remove(struct jobs *jobs, size_t i);
bool jobs_have(const struct jobs *jobs, uint64_t serial);
/* The first job that is not recorded, or NULL. */
const struct job *jobs_next(const struct jobs *jobs);
void jobs_deinit(struct jobs *jobs);
