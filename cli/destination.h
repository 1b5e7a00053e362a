/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a result goes: one file or many, what becomes of them, and who is told. */
#pragma once

#include "directory.h"
#include "merge.h"
#include "outcome.h"
#include "result_file.h"

/* The name that a result gets when -o gives none. */
#define OUTPUT_DEFAULT "trace.json"

/* Where a result goes: checked, opened, and its format known, before anything else happens. */
struct destination {
	const struct export_format *format;
	struct result_file file;    /* or: */
	struct split split;	    /* with --rotate; or: */
	struct directory directory; /* of a format that is one */
	bool rotates;
	bool streams;  /* what is in the file is nowhere else */
	bool given_up; /* what is not whole is not wanted */
	enum function_view function_view;
	struct perfetto_options perfetto;
	Traced__Control__Perfetto perfetto_words; /* the same, as they were typed */
	const char *path;
	bool in_place; /* a device, or a descriptor that was handed over: it has no name to get */
	struct merge_files merges; /* opened by the command, before destination_fill */
	/* What destination_fill's message refers to, and the descriptors that go with it. */
	Traced__Control__Merge merge_messages[EXPORT_MERGES_MAX];
	Traced__Control__Merge *merge_list[EXPORT_MERGES_MAX];
	int fds[CONTROL_FDS_MAX];
	size_t fd_count;
	/* What is known of the session besides, for destination_finish. */
	bool extracted; /* traced did not record it */
	bool ended_early;
	const Traced__Control__Session *told;
};
#define DESTINATION_INIT                                                                           \
	((struct destination){                                                                     \
		.file = RESULT_FILE_INIT, .split = SPLIT_INIT, .directory = DIRECTORY_INIT })
/* Returns 0, or an exit status after having said why. path NULL: -o or the default. */
int destination_open(struct destination *ret, const struct options *o, const char *path);
/* What takes the exporter's frames; NULL: it writes a file. */
struct framed *destination_framed(struct destination *d);
/* What is not whole is not wanted. */
void destination_give_up(struct destination *d);
/* For the exporter. */
int destination_fd(struct destination *d);
/* The exporter has it. */
void destination_passed(struct destination *d);
void destination_deinit(struct destination *d);
#define _cleanup_destination_ _cleanup_(destination_deinit)
/* The message that asks the daemon to write there; d->fds belong to it. */
void destination_fill(struct destination *d, const struct options *o, Traced__Control__Output *ret);
/*
 * Instead of destination_finish: it failed, for this reason. What was written while it was
 * recorded is kept as far as it is whole, unless it was given up (-ECANCELED). Returns the exit
 * status.
 */
int destination_fail(struct destination *d, struct error *err);
/*
 * What is written gets its name or names; outcome tells them. files: where it may keep them;
 * outlives outcome.
 */
int destination_commit(struct destination *d, struct outcome *outcome, struct buf *files,
		       struct error *err);
/* Commits the file and tells of it. Returns the exit status. */
int destination_finish(struct destination *d, const struct options *o,
		       const Traced__Control__Reply *reply);
