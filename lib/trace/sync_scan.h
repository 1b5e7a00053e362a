/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clock sync marks in the kernel's ring: "trace_event_clock_sync: name=ID". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct stream_index;
struct stream_reader;

#define SYNC_ID_MAX 128 /* bytes */
#define SYNC_SCAN_MAX 1024

struct kernel_sync {
	uint64_t ts;
	char id[SYNC_ID_MAX + 1]; /* letters, digits, '-' and '_', as trace readers require */
};

struct sync_scan {
	struct kernel_sync *syncs; /* owned; the first mark of each id */
	size_t count;
	bool done; /* false: the ring was not searched */
};

/*
 * Fills index->info.syncs. Reads the whole main ring, on the first call only: call it only if
 * something needs the marks. Returns 0, -ENOMEM, or the error of merge_next().
 */
int sync_scan_once(struct stream_index *index, const struct stream_reader *reader,
		   struct error *err);
void sync_scan_deinit(struct sync_scan *s);
const struct kernel_sync *sync_scan_find(const struct sync_scan *s, const char *id);

/* Length of the id if the mark's text is only a sync; 0: it is not. */
size_t sync_id_length(const char *text, size_t len, const char **ret_id);
