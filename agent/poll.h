/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How orders reach the board by HTTPS: the file at a URL is asked for again and again. Nothing here
 * looks into an order.
 */
#pragma once

#include "agent/backoff.h"
#include "agent/http.h"

struct poll {
	const char *url; /* borrowed */
	struct backoff backoff;
	char etag[HTTP_ETAG_MAX]; /* of the file that was handled last */
	char new_etag[HTTP_ETAG_MAX];
	uint64_t last_ns; /* CLOCK_REALTIME of the last answer; 0: none */
	uint64_t polls, unchanged, failures;
};

/*
 * Asks once. 1: ret has a file, which the caller handles; 0: there is none, or no new one. A
 * failure is counted, and postpones the next poll.
 */
int poll_orders(struct poll *poll, struct http *http, const struct policy *policy, struct buf *ret,
		struct error *err);
/* The file that came last is not wanted again. Without this call it comes with the next poll. */
void poll_handled(struct poll *poll);
