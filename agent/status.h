/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The board's word about itself to its broker: docs/fleet.md has the fields. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define STATUS_ORDERS_MAX 8
#define STATUS_REASON_MAX 80

enum outcome {
	OUTCOME_LATER,
	OUTCOME_WAITING,
	OUTCOME_RECORDING,
	OUTCOME_UPLOADING,
	OUTCOME_DONE,
	OUTCOME_FAILED,
	OUTCOME_REFUSED,
	OUTCOME_WITHDRAWN,
	OUTCOME_INTERRUPTED,
	OUTCOME_ENDED,
	OUTCOME_COUNT,
};
const char *outcome_name(enum outcome outcome);
/* False: the order is still to come, or is recorded: an agent that ends interrupts it. */
bool outcome_is_past(enum outcome outcome);

struct status_order {
	uint64_t serial; /* 0: not known */
	enum outcome outcome;
	char reason[STATUS_REASON_MAX + 1];
};

struct status {
	struct status_order orders[STATUS_ORDERS_MAX]; /* the one that changed last is the last */
	size_t count;
	bool has_changed;
	uint64_t sent_ns; /* CLOCK_BOOTTIME */
};

/* reason: NULL: none. Of several orders without a serial the last is kept. */
void status_note(struct status *status, uint64_t serial, enum outcome outcome, const char *reason);
/* NULL: not among the last. */
const struct status_order *status_find(const struct status *status, uint64_t serial);

/* state: "alive" or "stopped". now: seconds since 1970. */
void status_put(struct buf *out, const struct status *status, const char *state, uint64_t now,
		uint64_t spool_bytes);
/* The last will. */
void status_put_dead(struct buf *out, uint64_t now);
