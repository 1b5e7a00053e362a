/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clock sync marks in the kernel's ring: "trace_event_clock_sync: name=ID". */
#pragma once

#include "trace/index.h"

#define SYNC_ID_MAX 128 /* bytes */
#define SYNC_SCAN_MAX 1024

struct kernel_sync {
	uint64_t ts;
	char id[SYNC_ID_MAX + 1]; /* letters, digits, '-' and '_', as trace readers require */
};

/*
 * One for each export: the mark feed owns it and zeroes it. Its sources borrow it while they are
 * read. index->info.syncs borrows it once filled, until the feed ends.
 */
struct sync_scan {
	struct kernel_sync *syncs; /* owned; the first mark of each id */
	size_t count;
	bool done;
};

/*
 * Reads the whole main ring, only on the first call: call it only if a source has sync ids.
 * Publishes the result in index->info. -ENOMEM, or the error of merge_next().
 */
int sync_scan_once(struct sync_scan *s, struct stream_index *index,
		   const struct stream_reader *reader, struct error *err);
void sync_scan_deinit(struct sync_scan *s);
const struct kernel_sync *sync_scan_find(const struct sync_scan *s, const char *id);

/* Length of the id if the mark's text is only a sync; 0: it is not. */
size_t sync_id_length(const char *text, size_t len, const char **ret_id);
