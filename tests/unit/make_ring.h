/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sub-buffers of a synthetic capture for the merge, without the rest of the exporter. */
#pragma once

#include "make_stream.h"
#include "trace/index.h"
#include "trace/merge.h"

/* Indexes what maker_flush wrote, as the index pass does, for chunks without a header. */
void maker_index(const struct maker *m, struct stream_reader *r, struct ring_index *ring);
void ring_deinit(struct ring_index *ring);
void maker_layout(const struct maker *m, struct page_layout *ret);

/* A merge of a capture, with what it borrows. */
struct made_merge {
	struct stream_reader reader;
	struct ring_index ring;
	struct page_layout layout;
	struct merge *merge;
};

void maker_merge(const struct maker *m, struct made_merge *ret);
void made_merge_deinit(struct made_merge *m);
#define _cleanup_made_merge_ _cleanup_(made_merge_deinit)
