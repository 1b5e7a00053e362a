/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Notes which events a ring's sub-buffers contain, by the type number at the start of each record.
 * Looks at nothing else in a record, and checks each length against the sub-buffer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stream/layout.h"

/* Set of event types: common_type has 16 bits. */
struct event_set {
	uint64_t words[(1U << 16) / 64];
};

static inline void event_set_add(struct event_set *s, uint16_t event)
{
	s->words[event / 64] |= UINT64_C(1) << event % 64;
}

/*
 * After this many bytes looking stops and any event is assumed. Looking longer would cost more
 * time than it can save, which is the time to read the kernel's symbols.
 */
#define SEEN_EVENTS_BYTES_MAX (UINT64_C(256) << 20)

struct seen_events {
	bool off;	/* nobody needs the result any more */
	bool any;	/* any event may be there: too many bytes, or damaged ones */
	uint64_t bytes; /* bytes looked at */
	struct event_set events;
};

/* Looks at count consecutive sub-buffers of the running kernel. */
void seen_events_look(struct seen_events *s, const struct subbuf_layout *layout,
		      const void *subbufs, unsigned count);
/* True if one of these events may have occurred. */
bool seen_events_has_any(const struct seen_events *s, const struct event_set *of);
