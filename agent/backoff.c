/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/backoff.h"

#include <sodium.h>

#include "base/io.h"

#define LONGEST_NS (3600 * NSEC_PER_SEC)
#define RETRY_AFTER_MAX_S 86400
#define DOUBLINGS_MAX 20

uint64_t backoff_jitter(uint64_t ns)
{
	uint64_t ms = MIN(ns / NSEC_PER_MSEC, UINT64_C(1) << 31);

	return (ms / 2 + randombytes_uniform((uint32_t)ms + 1)) * NSEC_PER_MSEC;
}

void backoff_succeeded(struct backoff *b, uint64_t now, uint64_t interval_ns)
{
	b->failures = 0;
	b->next_ns = now + backoff_jitter(interval_ns);
}

void backoff_failed(struct backoff *b, uint64_t now, uint64_t first_ns, uint64_t retry_after_s)
{
	uint64_t delay = MIN(first_ns, LONGEST_NS) << MIN(b->failures, (unsigned)DOUBLINGS_MAX);

	b->failures++;
	delay = backoff_jitter(MIN(delay, LONGEST_NS));
	/* Not to the second: all boards were given the same time. */
	if (retry_after_s)
		delay += MIN(retry_after_s, (uint64_t)RETRY_AFTER_MAX_S) * NSEC_PER_SEC;
	b->next_ns = now + delay;
}
