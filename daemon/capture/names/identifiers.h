/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scans print formats: names that may be kernel constants (enumerators, HZ), and whether the
 * event's text names kernel symbols.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct identifiers {
	struct buf text;    /* the names, each NUL-terminated */
	const char **names; /* valid after identifiers_sort: sorted, unique; owned */
	size_t count;
};
void identifiers_deinit(struct identifiers *ids);

/*
 * Collects identifiers in the arguments of a format file's print fmt, except strings, fields
 * (REC->x) and calls. Adds "HZ" where jiffies are converted. May collect more than needed.
 */
void identifiers_collect(struct identifiers *ids, const char *format);
/* Sorts the names and removes duplicates. 0 or -ENOMEM. */
int identifiers_sort(struct identifiers *ids);

/* format: the text of an event's format file. */
bool format_wants_symbols(const char *format);
