/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decodes the records of one ring of marks (traced/mark_record.h), one after the other. The input
 * is hostile: every length is checked against its enclosing record, labels are bounded, unknown
 * records are skipped.
 */
#pragma once

#include "base/error.h"
#include "marks/labels.h"

struct mark_decode {
	struct mark_decode_shared *shared;
	bool big_endian;
	uint32_t generation;
	int32_t pid, tid;
	bool begun;		 /* records belong to this recording */
	uint64_t dropped_before; /* dropped in the ring's life before the recording */
	uint64_t begun_time;	 /* of the record with which it began */
	uint64_t lost_reported;	 /* sum of the LOST records, as far as they are possible */
	bool lost_impossibly;	 /* a LOST record claims more than that */
	struct label_table labels;
	/* Storage behind the pointers of the last mark. */
	struct buf args, extra, name, id, frame, linked;
	char frame_id[20], frame_parent[20];
};

void mark_decode_init(struct mark_decode *d, struct mark_decode_shared *shared, bool big_endian);
void mark_decode_deinit(struct mark_decode *d);

#define MARKS_POSSIBLE_MAX (UINT64_C(1) << 44) /* takes a thread days */

/* How many marks one thread can make between two times: not one per nanosecond. */
static inline uint64_t marks_possible(uint64_t from, uint64_t to)
{
	return to > from ? MIN(to - from, MARKS_POSSIBLE_MAX) : 0;
}

enum mark_decoded {
	DECODED_NOTHING, /* a control record or an unknown one: consumed */
	DECODED_MARK,	 /* consumed */
	DECODED_FRAME,	 /* a frame of the stack to come; decode the same record again */
};

/* Size of the record at p: at least 16, a multiple of 8, at most len. 0: no valid record. */
size_t mark_record_size(const struct mark_decode *d, const uint8_t *p, size_t len);
/* The time at which the record was written. */
uint64_t mark_record_time(const struct mark_decode *d, const uint8_t *p);

/*
 * Returns an enum mark_decoded, or -ENOMEM. Times are in the ring's clock. ret is valid until the
 * next call. -EBADMSG: the fields don't fit the record; skip the rest of its chunk.
 */
int mark_decode(struct mark_decode *d, const uint8_t *p, size_t size, struct mark *ret);
