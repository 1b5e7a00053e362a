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

/* Bytes. timestamp (8 of them) and commit (4 or 8) lie before the data, and one record fits. */
struct subbuf_layout {
	uint32_t size; /* header included */
	uint32_t timestamp_offset;
	uint32_t commit_offset, commit_size;
	uint32_t data_offset; /* a multiple of 4 */
};

/* text need not be terminated. size 0: as the text says. -EBADMSG: it describes no sub-buffer. */
int subbuf_layout_parse(struct subbuf_layout *ret, const char *text, size_t len, uint32_t size);
