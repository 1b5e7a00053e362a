/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Meaning of the labels of one ring of marks (MARK_DEFINE of traced/mark_record.h), and the set of
 * stack frames already reported. Bounded over all rings; what exceeds the bound is counted.
 */
#pragma once

#include "base/table.h"
#include "marks/mark.h"

/* Bytes, over all rings that are read at one time. */
#define MARK_LABELS_MEMORY (64U << 20)
#define MARK_FRAMES_MAX (1U << 20)

DECLARE_TABLE(frame_set, uint64_t);

/* State shared by the decoders of all rings. */
struct mark_decode_shared {
	struct shares labels;	 /* bytes */
	struct shares stacks;	 /* frames already reported */
	uint64_t unknown_phases; /* marks whose phase the format does not know */
	uint64_t labels_refused; /* uses of labels that were undefined or found no room */
	struct frame_set frames; /* hashes of the frames already reported */
};
#define MARK_DECODE_SHARED_INIT                                                                    \
	(struct mark_decode_shared)                                                                \
	{                                                                                          \
		.labels.max = MARK_LABELS_MEMORY, .stacks.max = MARK_FRAMES_MAX                    \
	}
void mark_decode_shared_deinit(struct mark_decode_shared *shared);

struct label {
	uint32_t id;	       /* 0: free slot */
	uint64_t frame;	       /* its hash if it is a stack frame; else 0 */
	struct text name, cat; /* owned */
};

DECLARE_TABLE(label_slots, struct label);
/* The labels of a ring. */
struct label_table {
	struct label_slots all;
	struct share_owner owner; /* of the ring */
	uint64_t bytes;		  /* of its share */
};
/* Frees the whole table for good. */
void label_table_forget(struct label_table *t, struct mark_decode_shared *shared);

/* NULL: undefined. This is counted, unless id is 0 (no label). */
const struct label *label_find(const struct label_table *t, struct mark_decode_shared *shared,
			       uint64_t id);
/* Copies the texts. Returns 0, also if they find no room, which is counted; or -ENOMEM. */
int label_define(struct label_table *t, struct mark_decode_shared *shared, uint32_t id,
		 struct text name, struct text cat, uint64_t frame);

/* Identifies a frame by its content, so that the same frame in several rings is one. */
uint64_t frame_hash(struct text name, struct text cat, uint64_t parent);
/* True once for each hash. False also if it finds no room, which is counted. */
bool frame_is_new(struct mark_decode_shared *s, const struct share_owner *owner, uint64_t hash);
