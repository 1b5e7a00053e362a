/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the labels of one ring of marks mean (MARK_DEFINE of traced/mark_record.h), and which
 * frames of stacks were given out. Bounded for all rings together; what finds no room is counted.
 */
#pragma once

#include "marks/mark.h"

/* Of all rings that are read at a time. */
#define MARK_LABELS_MEMORY (64U << 20)

/* What decoders share. */
struct mark_decode_shared {
	size_t label_bytes;	 /* in use */
	uint64_t labels_refused; /* uses of those that found no room, or were never defined */
	/* Frames that were given out already; open addressing by their hash, 0: free. */
	uint64_t *frames; /* owned */
	size_t frame_count, frame_slots;
};
void mark_decode_shared_deinit(struct mark_decode_shared *shared);

struct label {
	uint32_t id;	       /* 0: a free place */
	uint64_t frame;	       /* what it is called if it is a frame */
	struct text name, cat; /* owned */
};

struct label_table {
	struct label *all; /* owned; open addressing */
	size_t count, slots;
};
/* All that it has, for good. */
void label_table_forget(struct label_table *t, struct mark_decode_shared *shared);

/* NULL: it was not defined; counted, unless id is 0, which means none. */
const struct label *label_find(const struct label_table *t, struct mark_decode_shared *shared,
			       uint64_t id);
/* The texts are copied. 0, also where there is no room for more; -ENOMEM. */
int label_define(struct label_table *t, struct mark_decode_shared *shared, uint32_t id,
		 struct text name, struct text cat, uint64_t frame);

/* A frame is named by what it is, so that one in many rings is one. */
uint64_t frame_hash(struct text name, struct text cat, uint64_t parent);
/* True once for each; false also where there are too many, which is counted. */
bool frame_is_new(struct mark_decode_shared *s, uint64_t hash);
