/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The destination of a result: one file, several or a directory. It is named or removed at the end,
 * and reported to the user.
 */
#pragma once

#include "merge.h"
#include "outcome.h"
#include "output/directory.h"
#include "output/name.h"

/* Name of the result without -o and --format. */
#define OUTPUT_STEM "trace"
#define OUTPUT_ENDING ".json"
#define OUTPUT_DEFAULT OUTPUT_STEM OUTPUT_ENDING

/* Opened and checked, with a known format, before anything else happens. */
struct destination {
	const struct export_format *format;
	struct output_name file; /* one file, or: */
	struct split split;	 /* with --rotate, or: */
	struct framed directory; /* for a format that is a directory */
	struct sequels sequels;	 /* files that the one file goes on in */
	bool rotates;
	bool streams;  /* written while recording: the file has the only copy */
	bool given_up; /* the user gave up: remove incomplete files */
	enum function_view function_view;
	struct perfetto_options perfetto;
	Traced__Control__Perfetto perfetto_words; /* as typed */
	const char *path;
	char *own_path;		   /* owned; NULL: path is borrowed */
	bool in_place;		   /* a device or an inherited descriptor: nothing to rename */
	struct merge_files merges; /* opened by the command before destination_fill() */
	/* Storage for destination_fill()'s message, and its descriptors. */
	Traced__Control__Merge merge_messages[EXPORT_MERGES_MAX];
	Traced__Control__Merge *merge_list[EXPORT_MERGES_MAX];
	int fds[CONTROL_FDS_MAX];
	size_t fd_count;
	/* Facts about the session for destination_finish(). */
	bool extracted; /* from a buffer that traced did not record */
	bool ended_early;
	const Traced__Control__Session *reported;
};
#define DESTINATION_INIT                                                                           \
	((struct destination){                                                                     \
		.file = OUTPUT_NAME_INIT, .split = SPLIT_INIT, .directory = FRAMED_INIT })
/* An output's ending without -o: ".txt" for --format txt, else the usual one. */
const char *output_ending(const struct options *o, const char *usual);
/* "trace" with that ending. NULL: no memory. */
const char *output_default(const struct options *o, const char *usual, char **ret);
/* Returns 0, or an exit status after printing the error. path NULL: -o or the default. */
int destination_open(struct destination *ret, const struct options *o, const char *path);
/* The process that takes the exporter's frames; NULL: the exporter writes a file. */
struct framed *destination_framed(struct destination *d);
/* Incomplete files are removed from now on. */
void destination_give_up(struct destination *d);
/* Whether the output may have sequels (output/sequel.h). */
bool destination_may_go_on(const struct destination *d);
/* The descriptor for the exporter. */
int destination_fd(struct destination *d);
/* Appends the absolute path, for people; of several files a glob. Nothing for a pipe. */
void destination_put_place(const struct destination *d, struct buf *out);
/* Call once the exporter has the descriptor. */
void destination_passed(struct destination *d);
void destination_deinit(struct destination *d);
#define _cleanup_destination_ _cleanup_(destination_deinit)
/* Fills in the message that tells the daemon where to write; d->fds are its descriptors. */
void destination_fill(struct destination *d, const struct options *o, Traced__Control__Output *ret);
/*
 * Call instead of destination_finish() after a failure. Keeps the complete part of a file that was
 * written while recording, unless the user gave up (-ECANCELED). Returns the exit status.
 */
int destination_fail(struct destination *d, struct error *err);
/*
 * Gives the files their names and records them in outcome. files: storage for the names; must
 * outlive outcome.
 */
int destination_commit(struct destination *d, struct outcome *outcome, struct buf *files,
		       struct error *err);
/* Commits the file and reports it. Returns the exit status. */
int destination_finish(struct destination *d, const struct options *o,
		       const Traced__Control__Reply *reply);
