/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Instances that wait for the next recording ("spare" in traced.conf). The worker makes them,
 * gives them to what it arms, and removes them, in the order in which all that was submitted: so
 * none is made twice or taken by two. The loop knows how large they are, and no more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct capture_spare;
struct manager;

struct sparing {
	/* The worker's. */
	struct capture_spare *spare; /* NULL: none */
	char *clock;		     /* that it was made with; owned */
	uint64_t buffer_bytes;
	unsigned last_number;
	/* The loop's. */
	bool there;
	uint64_t bytes;	    /* of the kernel's memory */
	unsigned under_way; /* refreshes */
};

/*
 * Has one made as the configuration wants it, or removed; nothing is done where it is so. While
 * something records none is made: all CPUs have to work for it. To be called again when the
 * instances of a recording are gone.
 */
void sparing_refresh(struct manager *m);
/* A recording has taken it. */
void sparing_taken(struct manager *m);
/* Removes what there is, once the worker has ended. */
void sparing_deinit(struct sparing *s);
