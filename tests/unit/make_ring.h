/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sub-buffers of a made capture for the merge, without the rest of the exporter. */
#pragma once

#include "make_stream.h"
#include "trace/index.h"

/* What maker_flush wrote, as the index pass would remember it; chunks without a head. */
void maker_index(const struct maker *m, struct stream_reader *r, struct ring_index *ring);
void ring_deinit(struct ring_index *ring);
void maker_layout(const struct maker *m, struct page_layout *ret);
