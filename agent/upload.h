/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sends the results of the spool one after another, each to
 * PREFIX/fleet=FLEET/order=SERIAL/board=ID/HASH.SUFFIX. A file leaves the spool only when the store
 * answers a HEAD with its length. The same answer before a PUT means that it is there already.
 * After a failure the next file has its turn, so that one which the store refuses does not hold up
 * others.
 */
#pragma once

#include "agent/backoff.h"
#include "agent/http.h"
#include "agent/spool.h"
#include "agent/state.h"

struct upload {
	/*
	 * Appends the query that signs the URLs of that order's results, if there is one; NULL:
	 * there is none for any.
	 */
	void (*put_query)(void *data, uint64_t serial, struct buf *url);
	void *data;
	char failed[SPOOL_NAME_MAX]; /* the last file that failed, or exceeds today's bytes; empty:
					none */
	uint64_t sending;	     /* the order whose result is being sent; 0: none */
	struct backoff backoff;
	uint64_t done, failures;
	uint64_t present;     /* was there already */
	uint64_t unconfirmed; /* PUT was accepted, but HEAD denies it */
};

/*
 * Sends at most one file. Returns 1: it is there; 0: the spool is empty, or today's limit is
 * reached; -errno: failed, counted; the next try is postponed.
 */
int upload_next(struct upload *upload, struct http *http, const struct policy *policy,
		struct spool *spool, struct state *state, struct error *err);
