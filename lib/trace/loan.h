/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lets other threads read the merge's records after the call that returned them. The merge (the
 * lender) keeps the records' memory until they are returned. The render threads (the borrowers)
 * advance both counters. Only one thread at a time uses this struct.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct loan {
	uint64_t lent;	   /* number of the current loan */
	uint64_t returned; /* loans with lower numbers were returned */
	unsigned borrower; /* index of the borrower whose turn it is */
	bool pause;	   /* the lender should return to its caller, to be called again */
	/* Makes borrowers return all loans. Returns 0 or -errno. NULL: nothing is lent. */
	int (*recall)(void *userdata, struct error *err);
	void *userdata;
};
