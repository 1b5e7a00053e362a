/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Result of an export and its report to the user: the file, losses and hints. */
#pragma once

#include "cli.h"
#include "export/export.h"
#include "link.h"
#include "output/sequel.h"
#include "output/split.h"

struct outcome {
	const char *path;		    /* for messages */
	const struct export_format *format; /* the file's format */
	bool in_place;			    /* a device or an inherited descriptor */
	const struct split *split;	    /* the writer of the files, or NULL */
	const struct sequels *sequels;	    /* files that the file goes on in, or NULL */
	struct export_result result;
	uint64_t buffer_bytes; /* buffer size per CPU of the recording; 0: unknown */
	const Traced__Control__Session *session; /* at its end, or NULL; borrowed */
	const Traced__Control__Session
		*reported; /* at its start, or NULL; its warnings were printed */
	bool ended_early;  /* ended by itself, before its time */
	bool extracted;	   /* from a buffer that another tool filled */
	bool unmerged;	   /* a file to merge is missing */
	bool unsplit;	   /* the file still has all its segments */
	bool of_hosts;	   /* the warnings say what each of the machines has lost */
};
void outcome_deinit(struct outcome *outcome);
#define _cleanup_outcome_ _cleanup_(outcome_deinit)

/* Copies a result without error. ret is filled on failure, too, but not completely. */
int outcome_copy_result(struct export_result *ret, const Traced__Control__ExportResult *m);
/* Copies the daemon's reply. */
int outcome_from_finished(struct outcome *ret, const Traced__Control__Finished *finished,
			  struct error *err);
/* "N events lost ...", or at how many places. Appends nothing if there was no loss. */
void outcome_put_loss(const struct export_result *r, struct buf *out);

/*
 * Prints the report: short with -q, with the ledger for -v, as JSON with --json. Returns the exit
 * status.
 */
int outcome_tell(const struct outcome *outcome, const struct options *o);

/*
 * Estimates the characters of a JSON's text from the number of events and their bytes in the
 * stream. Error: -20 % to +40 %.
 */
uint64_t json_text_estimate(const char *tracer, uint64_t events, uint64_t bytes);
