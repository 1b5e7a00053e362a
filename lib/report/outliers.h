/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Boards that are far from the rest. The measure of a board is the p99 of a distribution over all
 * its rows. The distance is from the median of all boards, in units of 1.4826 times the median of
 * all boards' distances (MAD): of normal values that is the standard deviation, and up to half of
 * the boards may be outliers without an effect on it (Iglewicz and Hoaglin 1993, who call a value
 * beyond 3.5 an outlier).
 */
#pragma once

#include "report/table.h"

#define OUTLIER_DEVIATIONS 3.5
/* With fewer boards nobody knows which of them is the odd one. */
#define OUTLIER_BOARDS_MIN 4

struct outliers;

int outliers_new(struct outliers **ret);
struct outliers *outliers_free(struct outliers *o);
DEFINE_CLEANUP_FUNC(struct outliers *, outliers_free);

/* Adds a board's value. Texts are copied. 0, or -ENOMEM. */
int outliers_add(struct outliers *o, const char *report, const char *column, const char *board,
		 uint64_t value);
/* Puts a row for each outlier, the farthest ones first. Names are borrowed from o. 0, or -ENOMEM.
 */
int outliers_table(struct outliers *o, struct table **ret);
