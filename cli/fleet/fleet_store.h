/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The results of an order in a store: their names, and the way to them. */
#pragma once

#include "cli.h"
#include "fleet_listing.h"
#include "fleet_results.h"

struct fleet_store {
	const struct options *o;
	const char *url; /* without a slash at its end: url_len bytes */
	int url_len;
	uint64_t order;
	struct buf place; /* "fleet=F/order=N" */
	size_t refused;	  /* names that are none of results */
};
#define _cleanup_fleet_store_ _cleanup_(fleet_store_deinit)

/* o: --fleet, and --url, --curl, --s3 or --broker. order: its serial, as it was typed; NULL: none.
 */
int fleet_store_init(struct fleet_store *ret, const struct options *o, const char *order,
		     struct error *err);
void fleet_store_deinit(struct fleet_store *store);

/*
 * Asks the store what it has. ret: names like "fleet=F/order=N/board=B/HASH.traced". folder: for
 * nginx's answers meanwhile.
 */
int fleet_store_list(struct fleet_store *store, int folder, struct listing *ret, struct error *err);
/* Appends the URL of a name that fleet_store_list() gave. */
void fleet_store_put_url(const struct fleet_store *store, const char *name, struct buf *url);
/* The same as fleet_store_list(), but names of boards alone, some perhaps more than once. */
int fleet_store_boards(struct fleet_store *store, struct listing *ret, struct error *err);
