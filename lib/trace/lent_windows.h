/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Windows of the merge whose records are somebody else's until their loan is given back; then
 * they are windows again.
 */
#pragma once

#include "base/buf.h"
#include "trace/loan.h"

struct lent_windows {
	const struct loan *loan;  /* borrowed; NULL: records are valid until the next call */
	struct lent_window *list; /* owned; in order of their numbers, until they are used again */
	size_t count, room;
	uint64_t bytes, max;
};

void lent_windows_deinit(struct lent_windows *l);
/*
 * Lends the window, and leaves another in its place, empty and of any size; the same one, as it
 * is, where nothing is lent or it is empty. 0, -ENOMEM, or what the recall returned.
 */
int lent_windows_exchange(struct lent_windows *l, struct buf *window, struct error *err);
