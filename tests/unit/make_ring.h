/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sub-buffers of a synthetic capture for the merge, without the rest of the exporter. */
#pragma once

#include "make_stream.h"
#include "trace/index.h"

/* Indexes what maker_flush wrote, as the index pass does, for chunks without a header. */
void maker_index(const struct maker *m, struct stream_reader *r, struct ring_index *ring);
void ring_deinit(struct ring_index *ring);
void maker_layout(const struct maker *m, struct page_layout *ret);
