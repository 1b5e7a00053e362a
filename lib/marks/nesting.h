/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tracks the open slices of each thread. Trace readers reject an end without a beginning, and some
 * match an end to a slice by its category, others by its name. So unmatched ends are dropped, and
 * every other end gets the category and, in `begun`, the name of its beginning.
 */
#pragma once

#include "base/error.h"
#include "marks/mark.h"

struct nesting;

int nesting_new(struct nesting **ret);
struct nesting *nesting_free(struct nesting *n);
DEFINE_CLEANUP_FUNC(struct nesting *, nesting_free);

/*
 * Call for each mark in order. 1: good; an end's category and `begun` are now those of its
 * beginning, valid until the next call. 0: an unmatched end; drop it. -ENOSPC: a begin that found
 * no room, which is counted; drop it. -ENOMEM.
 */
int nesting_check(struct nesting *n, struct mark *mark);

/*
 * Begins another file: calls give with a begin at ts, of name and category only, for each slice
 * that is open, outer ones first. Slices that found no room do not begin there: their ends are
 * unmatched. ahead: the last checked mark, if the slices are to be those before it; or NULL.
 * Returns the first error of give.
 */
int nesting_reopen(struct nesting *n, const struct mark *ahead, uint64_t ts,
		   int (*give)(void *userdata, const struct mark *mark, struct error *err),
		   void *userdata, struct error *err);

/* Warns of begins that found no room, and of ends with other names. 0 or -ENOMEM. */
int nesting_warn(const struct nesting *n, struct stream_index *index);
