/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Settings of a persistent ring (last_boot.h), which the kernel makes at boot for the recorder of
 * crashes. They are nobody else's, and no recording is undone: the ring records until the machine
 * stops.
 */
#pragma once

#include "daemon/capture/capture.h"

struct boot_ring {
	const char *instance;
	struct capture_words events; /* globs */
	const char *tracer;	     /* NULL: none */
};

struct boot_ring_state {
	bool on;
	uint64_t bytes;	 /* of all CPUs */
	uint64_t events; /* in the ring */
};

/*
 * Empties the ring, sets events and tracer, and turns it on. Globs that match no event are appended
 * to missing, each behind a blank: their module may come later. If a step fails, the ring is off.
 */
int boot_ring_arm(const struct capture_env *env, const struct boot_ring *ring, struct buf *missing,
		  struct error *err);
/* Appends globs that match no event, and the tracer if this kernel lacks it, likewise. */
int boot_ring_find_missing(const struct capture_env *env, const struct boot_ring *ring,
			   struct buf *missing, struct error *err);
/* Turns it off and empties it. */
int boot_ring_disarm(const struct capture_env *env, const char *instance, struct error *err);
/* -ENOENT: no such instance. -ENOTTY: it is not persistent. */
int boot_ring_look(const struct capture_env *env, const char *instance, struct boot_ring_state *ret,
		   struct error *err);
