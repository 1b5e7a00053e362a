/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When to ask a server again, so that a fleet does not ask in step. */
#pragma once

#include <stdint.h>

struct backoff {
	unsigned failures; /* in a row */
	uint64_t next_ns;  /* CLOCK_BOOTTIME; 0: at once */
};

/* A random time from half to one and a half times ns. */
uint64_t backoff_jitter(uint64_t ns);
/* The next request comes after about interval_ns. */
void backoff_succeeded(struct backoff *backoff, uint64_t now_ns, uint64_t interval_ns);
/*
 * The next request comes after about first_ns, twice that after a second failure, and so on up to
 * an hour; not before retry_after_s, of which at most a day counts.
 */
void backoff_failed(struct backoff *backoff, uint64_t now_ns, uint64_t first_ns,
		    uint64_t retry_after_s);
