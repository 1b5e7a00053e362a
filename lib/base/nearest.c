/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/nearest.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

#define NAME_MAX_COMPARED 64
/* Characters that separate the words of a name. */
#define WORD_ENDS "_:"

#define TOO_FAR UINT32_MAX

/*
 * Optimal string alignment distance: insert, delete, replace, swap neighbours; ignores case.
 * Returns TOO_FAR early if it exceeds limit: there may be a hundred thousand names.
 */
static unsigned name_distance(const char *a, size_t a_len, const char *b, size_t b_len,
			      unsigned limit)
{
	unsigned rows[3][NAME_MAX_COMPARED + 1];
	unsigned *before = rows[0], *above = rows[1], *row = rows[2];
	unsigned least_above = 0;

	if ((a_len > b_len ? a_len - b_len : b_len - a_len) > limit)
		return TOO_FAR;
	for (size_t j = 0; j <= b_len; j++)
		above[j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		unsigned *recycled = before, least = (unsigned)i;

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			int x = tolower((unsigned char)a[i - 1]);
			int y = tolower((unsigned char)b[j - 1]);
			unsigned best = above[j - 1] + (x != y);

			best = MIN(best, above[j] + 1);
			best = MIN(best, row[j - 1] + 1);
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
			    y == tolower((unsigned char)a[i - 2]))
				best = MIN(best, before[j - 2] + 1);
			row[j] = best;
			least = MIN(least, best);
		}
		/* A swap uses the row before the last, so check both. */
		if (MIN(least, least_above) > limit)
			return TOO_FAR;
		least_above = least;
		before = above;
		above = row;
		row = recycled;
	}
	return above[b_len];
}

/* Distance of the nearest word in name. */
static unsigned name_word_distance(const char *wanted, size_t wanted_len, const char *name,
				   unsigned limit)
{
	unsigned best = TOO_FAR;

	for (const char *word = name; *word;) {
		size_t len = strcspn(word, WORD_ENDS);

		best = MIN(best, name_distance(wanted, wanted_len, word, len, limit));
		word += len + strspn(word + len, WORD_ENDS);
	}
	return best;
}

/*
 * A name that contains the typed text costs little ("switch" in "sched:sched_switch"), one with a
 * mistyped word slightly more ("swtich"). Costs above limit are not exact.
 */
static unsigned name_cost(const char *wanted, const char *name, unsigned limit)
{
	size_t wanted_len = strlen(wanted), name_len = strlen(name);
	unsigned whole;

	if (wanted_len > NAME_MAX_COMPARED || name_len > NAME_MAX_COMPARED)
		return TOO_FAR;
	whole = name_distance(wanted, wanted_len, name, name_len, limit);
	if (wanted_len >= 3 && strcasestr(name, wanted))
		return MIN(whole, 1u);
	if (limit && wanted_len >= 4 && !wanted[strcspn(wanted, WORD_ENDS)]) {
		unsigned word = name_word_distance(wanted, wanted_len, name, limit - 1);

		whole = MIN(whole, word < limit ? word + 1 : TOO_FAR);
	}
	return whole;
}

size_t nearest_names(const char *wanted, const char *const *names, size_t count,
		     const char *best[static NEAREST_MAX])
{
	unsigned costs[NEAREST_MAX], limit = MAX((unsigned)(strlen(wanted) + 1) / 3, 1U);
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		unsigned c = name_cost(wanted, names[i], limit);
		size_t at;

		if (c > limit || (found == NEAREST_MAX && c >= costs[NEAREST_MAX - 1]))
			continue;
		if (found < NEAREST_MAX)
			found++;
		for (at = found - 1; at > 0 && costs[at - 1] > c; at--) {
			costs[at] = costs[at - 1];
			best[at] = best[at - 1];
		}
		costs[at] = c;
		best[at] = names[i];
	}
	return found;
}
