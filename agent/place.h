/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A place that shows one order at a time, again and again: a topic of a broker. It has news only
 * when what it shows changes, so an order that comes with each connection is judged once.
 */
#pragma once

#include <stdint.h>

#include "agent/state.h"
#include "base/buf.h"

enum place_news {
	PLACE_NONE,
	PLACE_ORDER,
	PLACE_TOO_LARGE, /* more than ORDER_MAX bytes; they are not kept */
	PLACE_EMPTY,	 /* the order is withdrawn */
};

struct place {
	char *name; /* owned */
	enum place_news news;
	uint64_t due_ns;		   /* CLOCK_BOOTTIME: when the news are looked at */
	struct buf text;		   /* of PLACE_ORDER */
	unsigned char digest[DIGEST_SIZE]; /* of what was shown last */
};

void place_show(struct place *place, const void *data, size_t len);
/* The news are handled. */
void place_forget(struct place *place);
void place_deinit(struct place *place);
