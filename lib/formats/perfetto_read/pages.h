/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records of one CPU, put into sub-buffers as the kernel's ring would have them. */
#pragma once

#include "base/buf.h"
#include "stream/writer.h"
#include "trace/page.h"

struct pages {
	struct page_layout layout;
	struct stream_writer *w; /* borrowed */
	uint32_t cpu;		 /* whose records these are */
	struct buf buf;		 /* whole sub-buffers, and the one that is being filled */
	size_t start;		 /* of that one */
	uint64_t ts;		 /* of its last record */
	uint64_t missed;	 /* before it; UINT64_MAX: not known how many */
	bool open;
};

/* The text of events/header_page for a machine of that word size. 0 or -ENOMEM. */
int pages_describe(unsigned word_size, uint32_t subbuf_size, struct buf *ret);
void pages_deinit(struct pages *p);
/* Bytes of the longest record. */
uint32_t pages_room(const struct pages *p);
/* What follows, up to pages_flush, is of that CPU. lost: events are missing before it; 0: none. */
void pages_begin(struct pages *p, uint32_t cpu, uint64_t lost);
/*
 * 0; -EMSGSIZE: it is too long; -ENOMEM, or the writer's errors. A time before that of the last
 * record becomes that one.
 */
int pages_add(struct pages *p, uint64_t ts, const void *data, uint32_t len);
/* Ends the last one, and writes what was not written yet. 0 or the writer's errors. */
int pages_flush(struct pages *p);
