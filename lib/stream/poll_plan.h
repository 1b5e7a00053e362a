/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files that a recording reads at intervals, as requested: "meminfo,vmstat@1s". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "stream/poll_source.h"

#define POLL_INTERVAL_USUAL "1s"

struct poll_plan {
	uint64_t interval_ns[POLL_SOURCES]; /* by enum poll_source; 0: not read */
};

/*
 * Adds groups "SOURCE,SOURCE...@INTERVAL", separated by blanks, to the plan. Without an interval it
 * is POLL_INTERVAL_USUAL. Of a source that occurs again, the later interval holds. -EINVAL: err
 * names all sources.
 */
int poll_plan_add(struct poll_plan *plan, const char *text, struct error *err);
bool poll_plan_is_empty(const struct poll_plan *plan);
