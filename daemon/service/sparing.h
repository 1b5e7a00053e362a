/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Instances made in advance for the next recording ("spare" in traced.conf). The worker makes
 * them, passes them to the session that it arms, and removes them, in order of submission. So no
 * spare is made twice or taken by two. The loop knows only their size.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct capture_spare;
struct manager;

struct sparing {
	/* Used by the worker only. */
	struct capture_spare *spare; /* NULL: none */
	char *clock;		     /* the clock it was made with; owned */
	uint64_t buffer_bytes;
	unsigned last_number;
	/* Used by the loop only. */
	bool there;
	uint64_t bytes;	    /* kernel memory */
	unsigned under_way; /* refreshes */
};

/*
 * Makes or removes the spare to match the configuration; does nothing if it matches. Makes none
 * while anything records, because all CPUs have to work for it. Call again when a recording's
 * instances are removed.
 */
void sparing_refresh(struct manager *m);
/* A recording has taken the spare. */
void sparing_taken(struct manager *m);
/* Removes the spare. Call after the worker has ended. */
void sparing_deinit(struct sparing *s);
