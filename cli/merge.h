/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files of --merge: options, and descriptors for the exporter. */
#pragma once

#include "cli.h"
#include "export/export.h"
#include "input.h"

/* Setters of --merge, --sync-file and --merge-clock. */
int merge_set_file(struct options *o, const char *value, struct error *err);
int merge_set_syncs(struct options *o, const char *value, struct error *err);
int merge_set_clock(struct options *o, const char *value, struct error *err);

struct merge_files {
	struct export_merge files[EXPORT_MERGES_MAX];
	const char *clocks[EXPORT_MERGES_MAX]; /* as typed; "": not given */
	size_t count;
	int scratch_fd; /* owned; an unnamed file for what exceeds the exporter's memory; 0: none */
	bool missing;	/* a requested file could not be opened */
};

/*
 * Call before a recording: the files may be written by it, so only checks that existing ones can be
 * read.
 */
int merge_files_check(const struct options *o, struct error *err);
/* Opens all files in o; each becomes a regular file. */
int merge_files_open(struct merge_files *ret, const struct options *o, struct error *err);
/* The same after a recording: warns of files that can't be opened, and skips them. */
void merge_files_open_some(struct merge_files *ret, const struct options *o);
/* Opens one file of that option as a regular file; owned by the caller. */
int merge_open_file(const char *option, const char *path, enum input_kind kind, struct error *err);
/* An unnamed file for what exceeds the exporter's memory; 0: memory must suffice. */
int merge_open_scratch(void);
void merge_files_deinit(struct merge_files *m);
#define _cleanup_merge_files_ _cleanup_(merge_files_deinit)
