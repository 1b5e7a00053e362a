/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which slices each thread is in. Readers refuse an end without a beginning,
 * and one of them ends the slice whose category an end names: so ends that end nothing
 * are found here, and all others are told of what they end.
 */
#pragma once

#include "marks/mark.h"

struct nesting;

int nesting_new(struct nesting **ret);
struct nesting *nesting_free(struct nesting *n);
DEFINE_CLEANUP_FUNC(struct nesting *, nesting_free);

/*
 * For each mark in its order. 1: it is good; an end has the category of its beginning now,
 * valid until the next call; 0: it ends nothing; -ENOMEM.
 */
int nesting_check(struct nesting *n, struct mark *mark);
