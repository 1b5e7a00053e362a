/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a person is told of marks and samples that are missing or not exact, once all were given
 * out. They become warnings of the index, and what was damaged makes it incomplete. Sums are
 * borrowed for the call. All return 0 or -ENOMEM.
 */
#pragma once

#include "marks/rings.h"
#include "samples/sample_feed.h"
#include "trace/index.h"

/* bound_max: ns; clocks that are tied less closely are warned of. */
int warn_of_rings(struct stream_index *index, const struct mark_rings_sum *sum, uint64_t bound_max);
int warn_of_samples(struct stream_index *index, const struct sample_feed_sum *sum);
