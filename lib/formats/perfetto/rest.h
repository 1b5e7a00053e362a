/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What Perfetto's messages have no place for: parts of an event's record, events' formats, symbols
 * of addresses. The bundles hold it in fields that other readers skip (docs/perfetto.md).
 */
#pragma once

#include "formats/perfetto/schema.h"

/* FtraceEventBundle's field numbers, ours. */
enum {
	BUNDLE_FORMATS = 74726,	  /* traced.origin.Format */
	BUNDLE_ADDRESSES = 74727, /* traced.origin.Address */
	BUNDLE_REST = 74728,	  /* bytes: see rest_write */
	BUNDLE_FLAGS = 74729,	  /* bytes: see struct pf_flags */
	BUNDLE_LOST_COUNT = 74730,
};

/* traced.origin.Format and Address. */
enum {
	FORMAT_FIELD = 1,
	FORMAT_TEXT_FIELD = 2,
	FORMAT_SYSTEM = 3,
	FORMAT_TEXT = 4,
	FORMAT_REST = 5
};
enum {
	ADDRESS_ID = 1,
	ADDRESS_NAME = 2,
	ADDRESS_MODULE = 3,
	ADDRESS_OFFSET = 4,
	ADDRESS_SIZE = 5,
	ADDRESS_TEXT = 6,
	ADDRESS_ARGUMENTS = 7,
};

/*
 * The flags and the preemption count of a bundle's events, which mostly are those of the
 * last event of the same kind: varints in pairs, how many events had what was expected since
 * the last pair, and what the next one has.
 */
#define PF_FLAGS_KINDS 64
struct pf_flags {
	uint16_t last[PF_FLAGS_KINDS]; /* by an event's number */
	uint32_t expected;
};
static inline uint16_t *pf_flags_last(struct pf_flags *f, uint16_t id)
{
	return &f->last[id % PF_FLAGS_KINDS];
}

/* What pf_rest_write has to write of that event. 0 or -ENOMEM. */
int pf_rest_compile(struct pf_event *e);

/* How files name the kinds of what is in a rest: later versions read them, too. */
enum {
	REST_NUMBER = 1,
	REST_ADDRESS = 2,
	REST_ADDRESSES = 3,
	REST_NUMBERS = 4,
	REST_BYTES = 5,
	REST_BLOCK = 6,
	REST_STRING = 7,
};

/*
 * Appends what the message of ev does not hold: field by field of e->rest, by its kind a varint, or
 * a count of varints, or a length and bytes. Of addresses PF_ADDRESS has the number of an Address,
 * or 0 and the address as it is shown. What lies outside of the record is 0, or empty.
 */
int pf_rest_write(struct pf_schema *s, const struct pf_event *e, const struct trace_event *ev,
		  struct buf *out);

/* Its format goes with the next bundle, unless it did already. 0 or -ENOMEM. */
int pf_tell_format(struct pf_schema *s, struct pf_event *e);
