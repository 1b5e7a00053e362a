/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A place that shows one order at a time, again and again: a topic of a broker. It has news only
 * when what it shows changes, so an order that comes with each connection is judged once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/state.h"
#include "base/buf.h"

enum place_news {
	PLACE_NONE,
	PLACE_ORDER,
	PLACE_TOO_LARGE, /* more than ORDER_MAX bytes; they are not kept */
};

struct place {
	char *name;	   /* owned */
	bool is_withdrawn; /* the orders before the news are, and nobody has looked yet */
	enum place_news news;
	struct buf text;   /* of PLACE_ORDER */
	unsigned replaced; /* news that nobody has looked at */
	/* The order, if its not_before lies ahead; serial 0: it does not. */
	struct state_taken later;
	/* CLOCK_BOOTTIME: the next look, and the last one. A flood of news is looked at once a
	 * second; withdrawals at once. */
	uint64_t due_ns, looked_ns;
	unsigned char digest[DIGEST_SIZE]; /* of what was shown last */
};

/* No bytes: the orders so far are withdrawn. */
void place_show(struct place *place, const void *data, size_t len);
/* The news are handled. */
void place_forget(struct place *place, uint64_t now_ns);
void order_place_deinit(struct place *place);
