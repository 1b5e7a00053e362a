/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns losses and inexact times of marks and samples into warnings, after the last mark. Damage
 * also marks the trace incomplete. Sums are borrowed for the call. All return 0 or -ENOMEM.
 */
#pragma once

#include "marks/rings.h"
#include "samples/sample_feed.h"
#include "trace/index.h"

/* bound_max: ns; warn of clocks tied with a larger error. */
int warn_of_rings(struct stream_index *index, const struct mark_rings_sum *sum, uint64_t bound_max);
int warn_of_samples(struct stream_index *index, const struct sample_feed_sum *sum);
