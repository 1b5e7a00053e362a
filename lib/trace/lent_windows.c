/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/lent_windows.h"

#include <string.h>

#include "base/vec.h"

struct lent_window {
	struct buf bytes;
	uint64_t number; /* number of its loan */
	unsigned borrower;
};

/* Takes a returned window, preferably one in the CPU cache of the thread that will fill it. */
static bool window_take_back(struct lent_windows *l, struct buf *ret)
{
	size_t i = 0, n = 0;

	while (n < l->count && l->list[n].number < l->loan->returned)
		n++;
	while (i < n && l->list[i].borrower != l->loan->borrower)
		i++;
	if (!n)
		return false;
	if (i == n)
		i = 0;
	*ret = l->list[i].bytes;
	l->bytes -= ret->cap;
	l->count--;
	memmove(&l->list[i], &l->list[i + 1], (l->count - i) * sizeof(*l->list));
	buf_clear(ret);
	return true;
}

/* Frees returned windows until there is room for one more. */
static void windows_drop_returned(struct lent_windows *l, size_t room)
{
	struct buf b;

	while (l->bytes + room > l->max && window_take_back(l, &b))
		buf_deinit(&b);
}

/* Notes that the window is lent from now on. */
static int window_lend(struct lent_windows *l, const struct buf *window)
{
	if (vec_push(l->list, l->count, l->room,
		     (struct lent_window){ *window, l->loan->lent, l->loan->borrower }) < 0)
		return -ENOMEM;
	l->bytes += window->cap;
	return 0;
}

static void windows_drop_all(struct lent_windows *l)
{
	while (l->count)
		buf_deinit(&l->list[--l->count].bytes);
	l->bytes = 0;
}

void lent_windows_deinit(struct lent_windows *l)
{
	windows_drop_all(l);
	free(l->list);
	*l = (struct lent_windows){ 0 };
}

int lent_windows_exchange(struct lent_windows *l, struct buf *window, struct error *err)
{
	struct buf next = BUF_INIT;
	bool had;

	if (!l->loan || !l->loan->recall) {
		windows_drop_all(l);
		return 0;
	}
	if (!window->len)
		return 0;
	had = window_take_back(l, &next);
	windows_drop_returned(l, window->cap);
	if (l->bytes + window->cap > l->max) {
		int r = l->loan->recall(l->loan->userdata, err);

		if (r < 0) {
			buf_deinit(&next);
			return r;
		}
		if (!had)
			window_take_back(l, &next);
		windows_drop_returned(l, window->cap);
	}
	if (window_lend(l, window) < 0) {
		buf_deinit(&next);
		return error_errno(err, -ENOMEM, "can't merge the events");
	}
	*window = next;
	return 0;
}
