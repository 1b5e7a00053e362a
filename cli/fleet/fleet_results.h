/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results of boards in a folder, as a store has them: fleet=F/order=N/board=B/HASH.ndjson.zst. */
#pragma once

#include "base/error.h"
#include "fleet/result_name.h"

/* A board's own bound is less: result_max of agent.conf. */
#define FLEET_FILE_MAX (UINT64_C(64) << 20)

struct fleet_result {
	struct result_name name;
	char *path;	       /* owned */
	uint64_t offset, size; /* fleet_results_gather(): of its content */
};

struct fleet_results {
	struct fleet_result *items; /* owned; by order, board, segment and file */
	size_t count, cap;
	size_t refused; /* files that are not what their names say; each has a message */
};
#define _cleanup_fleet_results_ _cleanup_(fleet_results_deinit)

/* Finds results of one kind in folder or below it, and follows no links. -ENOENT: there is none. */
int fleet_results_find(struct fleet_results *ret, const char *folder, enum result_kind kind,
		       struct error *err);
void fleet_results_deinit(struct fleet_results *results);

/*
 * Appends the content of all to a file, whose bytes are then those that were compared with their
 * names. Results that differ are refused, and leave the list.
 */
int fleet_results_gather(struct fleet_results *results, int fd, struct error *err);
/* Opens one, and compares its content with its name. -EBADMSG: it differs. */
int fleet_result_open_at(int dir_fd, const struct fleet_result *result, struct error *err);
/*
 * Whether reports as rows are whole, from fd's begin on; for root in a process without rights.
 * Otherwise a single file would end a query over all.
 */
int fleet_result_check_rows(const struct fleet_result *result, int fd, struct error *err);
