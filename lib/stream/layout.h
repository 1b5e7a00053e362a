/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The layout of a sub-buffer, from the text of events/header_page. The recorder reads its own
 * kernel's; the exporter reads what a stream has, so the text is hostile.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The kernel's RB_WRITE_MASK has 20 bits for the bytes written to a sub-buffer. */
#define SUBBUF_SIZE_MAX (1U << 20)

/*
 * From include/linux/ring_buffer.h and kernel/trace/ring_buffer.c. The commit field holds the bytes
 * of committed records, and flags. A record's header holds type_len and time_delta; type_len is the
 * length in words, or a type.
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

/*
 * In bytes. timestamp (8) and commit (4 or 8) precede the data. The data has room for one record.
 */
struct subbuf_layout {
	uint32_t size; /* including the header */
	uint32_t timestamp_offset;
	uint32_t commit_offset, commit_size;
	uint32_t data_offset; /* a multiple of 4 */
};

/* text need not be terminated. size 0: take it from the text. -EBADMSG: no valid sub-buffer. */
int subbuf_layout_parse(struct subbuf_layout *ret, const char *text, size_t len, uint32_t size);
