/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parts of an event's record, events' formats and symbols of addresses for which Perfetto's
 * messages have no field. The bundles hold them in fields that other readers skip
 * (docs/perfetto.md).
 */
#pragma once

#include "formats/perfetto/schema.h"

/* Our field numbers in FtraceEventBundle. */
enum {
	BUNDLE_FORMATS = 74726,	  /* traced.origin.Format */
	BUNDLE_ADDRESSES = 74727, /* traced.origin.Address */
	BUNDLE_REST = 74728,	  /* bytes: see pf_rest_write */
	BUNDLE_FLAGS = 74729,	  /* bytes: see struct pf_flags */
	BUNDLE_LOST_COUNT = 74730,
};

/* Ours in SchedSwitchFtraceEvent: 1 marks a switch that the kernel did not report. */
#define SWITCH_UNREPORTED 74731

/* Fields of traced.origin.Format and Address. */
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
 * Flags and preemption counts of a bundle's events. Mostly they repeat those of the previous event
 * of the same kind. Encoded as pairs of varints: how many events matched since the last pair, then
 * the next one's value.
 */
#define PF_FLAGS_KINDS 64
struct pf_flags {
	uint16_t last[PF_FLAGS_KINDS]; /* by event id modulo PF_FLAGS_KINDS */
	uint32_t expected;
};
static inline uint16_t *pf_flags_last(struct pf_flags *f, uint16_t id)
{
	return &f->last[id % PF_FLAGS_KINDS];
}

/* Compiles what pf_rest_write() writes for that event. 0 or -ENOMEM. */
int pf_rest_compile(struct pf_event *e);

/* Kinds as stored in files: never renumber them. */
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
 * Appends what the message of ev lacks, for each field of e->rest: a varint, a count and varints,
 * or a length and bytes, by kind. PF_ADDRESS: the number of an Address, or 0 and the address as
 * shown. A field outside the record is 0 or empty.
 */
int pf_rest_write(struct pf_schema *s, const struct pf_event *e, const struct trace_event *ev,
		  struct buf *out);

/* Puts the event's format into the next bundle, unless the file has it. 0 or -ENOMEM. */
int pf_put_format(struct pf_schema *s, struct pf_event *e);
