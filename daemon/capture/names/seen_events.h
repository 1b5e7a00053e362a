/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which events are in what was taken from a ring, by the number that each record begins with.
 * Nothing else of a record is looked at, and its length is checked against the sub-buffer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stream/layout.h"

/* By their numbers, common_type of 16 bits. */
struct event_set {
	uint64_t words[(1U << 16) / 64];
};

static inline void event_set_add(struct event_set *s, uint16_t event)
{
	s->words[event / 64] |= UINT64_C(1) << event % 64;
}

/*
 * After so many bytes nothing more is looked at, and any event may be there: to look on would take
 * the time that it is to save, that of reading the kernel's symbols.
 */
#define SEEN_EVENTS_BYTES_MAX (UINT64_C(256) << 20)

struct seen_events {
	bool off;	/* nobody asks any more */
	bool any;	/* may be there: too many bytes, or damaged ones */
	uint64_t bytes; /* that were looked at */
	struct event_set events;
};

/* count sub-buffers in succession, of the running kernel. */
void seen_events_look(struct seen_events *s, const struct subbuf_layout *layout,
		      const void *subbufs, unsigned count);
/* Whether one of these may have been there. */
bool seen_events_has_any(const struct seen_events *s, const struct event_set *of);
