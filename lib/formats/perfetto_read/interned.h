/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Interned data of a Perfetto trace, of each sequence its own: what packets say once and then
 * refer to by number.
 */
#pragma once

#include "formats/perfetto_read/known.h"
#include "formats/perfetto_read/packets.h"
#include "marks/value.h"

enum interned_kind {
	INTERNED_CATEGORY,
	INTERNED_NAME,
	INTERNED_KEY,
	INTERNED_FUNCTION,
	INTERNED_PATH,
	INTERNED_FRAME,
	INTERNED_MAPPING,
	INTERNED_STACK,
	INTERNED_KINDS,
};

/* A sequence's, by kind. */
struct interned {
	uint32_t sequence;
	struct known_table kinds[INTERNED_KINDS];
	struct known_table timebase; /* at 0: what samples are taken by */
};

#define INTERNED_SEQUENCES_MAX 16

struct interned_all {
	struct interned sequences[INTERNED_SEQUENCES_MAX];
	unsigned count;
};
void interned_deinit(struct interned_all *a, struct known_room *room);
/* A sequence that is new is added. NULL: there are too many. */
struct interned *interned_of(struct interned_all *a, uint32_t sequence);

/* What the sequence interned is forgotten. */
void interned_clear(struct interned *in, struct known_room *room);
/* An InternedData message; a TracePacketDefaults. Both return how many things found no room. */
uint64_t interned_take(struct interned *in, const struct wire_field *data, struct known_room *room);
uint64_t interned_take_defaults(struct interned *in, const struct wire_field *defaults,
				struct known_room *room);

/* data NULL: it is not there. */
struct text interned_text(const struct interned *in, enum interned_kind kind, uint64_t iid);
struct text interned_timebase(const struct interned *in);

struct interned_stack {
	bool numbered;
	uint32_t number; /* for the caller, of the innermost frame once it is numbered */
	uint32_t depth;
	uint64_t frames[]; /* by number; the outermost first */
};
/* NULL: it is not there. */
struct interned_stack *interned_stack(const struct interned *in, uint64_t iid);
/* False: it is not there, or refers to what isn't. */
bool interned_frame(const struct interned *in, uint64_t iid, struct text *ret_function,
		    struct text *ret_path);
