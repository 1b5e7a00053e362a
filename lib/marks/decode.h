/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The records of one ring of marks (traced/mark_record.h), one after the other.
 * They come from strangers: each length is checked against what encloses it,
 * what a label means is bounded, and what is not known is passed over.
 */
#pragma once

#include "base/error.h"
#include "marks/labels.h"

struct mark_decode {
	struct mark_decode_shared *shared;
	bool big_endian;
	uint32_t generation;
	int32_t pid, tid;
	bool begun;		 /* records are this recording's */
	uint64_t dropped_before; /* in the ring's life, before the recording */
	uint64_t lost_told;	 /* by LOST records */
	struct label_table labels;
	/* What the last mark's parts point to. */
	struct buf args, extra, name, id, frame, linked;
	char frame_id[20], frame_parent[20];
};

void mark_decode_init(struct mark_decode *d, struct mark_decode_shared *shared, bool big_endian);
void mark_decode_deinit(struct mark_decode *d);

enum mark_decoded {
	DECODED_NOTHING, /* a control record, or one that is not known: taken */
	DECODED_MARK,	 /* taken */
	DECODED_FRAME,	 /* of a stack, for what follows: the same record has to be decoded again */
};

/* The bytes of the record at p: at least 16, a multiple of 8, not more than len; 0: none fits. */
size_t mark_record_size(const struct mark_decode *d, const uint8_t *p, size_t len);
/* Of a record of that size; when it was written. */
uint64_t mark_record_time(const struct mark_decode *d, const uint8_t *p);

/*
 * An enum mark_decoded, or -ENOMEM. Times are in the ring's clock; ret is valid until the next
 * call. A record whose fields do not fit gives -EBADMSG: what follows in its chunk is no use.
 */
int mark_decode(struct mark_decode *d, const uint8_t *p, size_t size, struct mark *ret);
