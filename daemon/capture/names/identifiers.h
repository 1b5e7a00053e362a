/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The names in print formats that may be constants of the kernel: enumerators, HZ. */
#pragma once

#include <stddef.h>

#include "base/buf.h"

struct identifiers {
	struct buf text;    /* the names, each terminated */
	const char **names; /* after identifiers_sort: sorted, each once; owned */
	size_t count;
};
void identifiers_deinit(struct identifiers *ids);

/*
 * Collects from the text of a format file what stands in the arguments of its
 * print fmt and is no string, no field (REC->x), no call; "HZ" where jiffies
 * are converted. Some more than is needed may come in.
 */
void identifiers_collect(struct identifiers *ids, const char *format);
/* Sorts what was collected. 0 or -ENOMEM. */
int identifiers_sort(struct identifiers *ids);
