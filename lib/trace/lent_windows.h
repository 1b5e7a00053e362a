/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Windows of the merge whose records other threads still read. Once their loan is returned they are
 * used again.
 */
#pragma once

#include "base/buf.h"
#include "trace/loan.h"

struct lent_windows {
	const struct loan *loan;  /* borrowed; NULL: records are valid until the next merge call */
	struct lent_window *list; /* owned; sorted by number; kept until reused */
	size_t count, room;
	uint64_t bytes, max;
};

void lent_windows_deinit(struct lent_windows *l);
/*
 * Lends the window and replaces it by an empty one of any size. Without a loan, or if the window is
 * empty, leaves it unchanged. Returns 0, -ENOMEM, or the result of the recall.
 */
int lent_windows_exchange(struct lent_windows *l, struct buf *window, struct error *err);
