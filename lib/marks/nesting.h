/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tracks the open slices of each thread. Trace readers reject an end without a beginning, and some
 * match an end to a slice by its category, others by its name. So unmatched ends are dropped, and
 * every other end gets the category and, in `begun`, the name of its beginning.
 */
#pragma once

#include "marks/mark.h"

struct nesting;

int nesting_new(struct nesting **ret);
struct nesting *nesting_free(struct nesting *n);
DEFINE_CLEANUP_FUNC(struct nesting *, nesting_free);

/*
 * Call for each mark in order. 1: good; an end's category and `begun` are now those of its
 * beginning, valid until the next call. 0: an unmatched end; drop it. -ENOMEM.
 */
int nesting_check(struct nesting *n, struct mark *mark);
