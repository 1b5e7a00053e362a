/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files of --merge, opened, with a nameless file for what the exporter must put down. */
#pragma once

#include "cli.h"
#include "export/export.h"

struct merge_files {
	struct export_merge files[EXPORT_MERGES_MAX];
	size_t count;
	int scratch_fd; /* owned; 0: none */
};

/* Opens all that o names. */
int merge_files_open(struct merge_files *ret, const struct options *o, struct error *err);
void merge_files_deinit(struct merge_files *m);
#define _cleanup_merge_files_ _cleanup_(merge_files_deinit)
