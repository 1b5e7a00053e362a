/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files of --merge: the options, and what is opened for the exporter. */
#pragma once

#include "cli.h"
#include "export/export.h"
#include "input.h"

/* --merge, --sync-file and --merge-clock. */
int merge_set_file(struct options *o, const char *value, struct error *err);
int merge_set_syncs(struct options *o, const char *value, struct error *err);
int merge_set_clock(struct options *o, const char *value, struct error *err);

struct merge_files {
	struct export_merge files[EXPORT_MERGES_MAX];
	const char *clocks[EXPORT_MERGES_MAX]; /* as typed; "": not given */
	size_t count;
	int scratch_fd; /* owned; 0: none: a nameless file for what the exporter must put down */
	bool missing;	/* one that was asked for is not among them */
};

/*
 * Before a recording, which may write them: that they can be read, should they be there already,
 * is all that can be known.
 */
int merge_files_check(const struct options *o, struct error *err);
/* Opens all that o names; each is a regular file then. */
int merge_files_open(struct merge_files *ret, const struct options *o, struct error *err);
/* The same, after a recording: what can't be opened is warned of and left out. */
void merge_files_open_some(struct merge_files *ret, const struct options *o);
/* One file of that option, a regular one; owned by the caller. */
int merge_open_file(const char *option, const char *path, enum input_kind kind, struct error *err);
/* A nameless file for what the exporter must put down; 0: what memory holds has to do. */
int merge_open_scratch(void);
void merge_files_deinit(struct merge_files *m);
#define _cleanup_merge_files_ _cleanup_(merge_files_deinit)
