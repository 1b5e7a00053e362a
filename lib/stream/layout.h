/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where things lie in a sub-buffer, as the text of events/header_page tells. The recorder
 * reads its own kernel's, the exporter whatever a stream says: the text is hostile.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The kernel's RB_WRITE_MASK counts what is written of one in 20 bits. */
#define SUBBUF_SIZE_MAX (1U << 20)

/*
 * In it, as include/linux/ring_buffer.h and kernel/trace/ring_buffer.c have them: the bytes of
 * records that are committed, beside flags in the same word; a record's header, type_len and
 * time_delta, of which the former is its length in words, or tells what it is.
 */
#define SUBBUF_COMMIT_MASK ((UINT32_C(1) << 27) - 1)
#define RECORD_HEADER 4
#define RECORD_DELTA_BITS 27
#define RECORD_DELTA_MASK ((UINT32_C(1) << RECORD_DELTA_BITS) - 1)
enum record_type {
	RECORD_DATA_MAX = 28,
	RECORD_PADDING,
	RECORD_TIME_EXTEND,
	RECORD_TIME_STAMP,
};

/* Bytes. timestamp (8 of them) and commit (4 or 8) lie before the data, and one record fits. */
struct subbuf_layout {
	uint32_t size; /* header included */
	uint32_t timestamp_offset;
	uint32_t commit_offset, commit_size;
	uint32_t data_offset; /* a multiple of 4 */
};

/* text need not be terminated. size 0: as the text says. -EBADMSG: it describes no sub-buffer. */
int subbuf_layout_parse(struct subbuf_layout *ret, const char *text, size_t len, uint32_t size);
