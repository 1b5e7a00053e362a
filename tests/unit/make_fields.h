/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event that has a field of every type, numbers of each size, arrays and dynamic ones, and all
 * of them in its text; for machines of any word size. make_kinds.h has what exporters tell apart.
 */
#pragma once

#include "make_stream.h"

/* Its format, and symbols. */
void maker_fields(struct maker *m);
/* One, with values at random, and such at which widths and signs show. random: as of random_next.
 */
void event_fields(struct maker *m, uint64_t ts, uint64_t *random);
