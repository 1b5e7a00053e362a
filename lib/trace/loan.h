/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records that are still read, by other threads, behind the call that gave them out. Who lends
 * (the merge) leaves their memory alone until they are given back; who borrows (the rendering)
 * counts both. One thread at a time does all of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct loan {
	uint64_t lent;	   /* the number of what is given out now */
	uint64_t returned; /* what has a lower number was given back */
	unsigned borrower; /* one of several, whose turn it is */
	bool pause;	   /* who gives out shall return, to be called again */
	/* NULL: nothing is kept. Gives back all: 0 or -errno. */
	int (*recall)(void *userdata, struct error *err);
	void *userdata;
};
