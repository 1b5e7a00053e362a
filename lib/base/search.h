/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Binary search with an inline comparison; bsearch() compares through a pointer. */
#pragma once

/*
 * Returns the first index below count for which `before` is false, or count. `before` is an
 * expression of the index i, true for a first part of the array and false for the rest:
 *
 * 	at = lower_bound(i, list->count, list->all[i].address < address);
 */
#define lower_bound(i, count, before)                                                              \
	({                                                                                         \
		__typeof__((count) + 0) _low = 0, _high = (count);                                 \
		while (_low < _high) {                                                             \
			__typeof__(_low) i = _low + (_high - _low) / 2;                            \
			if (before)                                                                \
				_low = i + 1;                                                      \
			else                                                                       \
				_high = i;                                                         \
		}                                                                                  \
		_low;                                                                              \
	})
