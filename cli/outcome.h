/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What came of an export, wherever it ran, and what a person is told of it:
 * the file, the losses and what to do about them.
 */
#pragma once

#include "cli.h"
#include "export/export.h"
#include "link.h"
#include "split.h"

struct outcome {
	const char *path;		    /* for people */
	const struct export_format *format; /* its name */
	bool in_place;			    /* a device, or a descriptor that was handed over */
	const struct split *split;	    /* which made the files, or NULL */
	struct export_result result;
	uint64_t buffer_bytes;			 /* per CPU, that the recording had; 0: unknown */
	const Traced__Control__Session *session; /* as it ended, or NULL; borrowed */
	const Traced__Control__Session *told; /* as it began: these warnings were said; or NULL */
	bool ended_early;		      /* by itself, before its time */
	bool extracted;			      /* from a buffer that others filled */
	bool unmerged;			      /* a file that was to be merged is not in it */
};
void outcome_deinit(struct outcome *outcome);
#define _cleanup_outcome_ _cleanup_(outcome_deinit)

/* Copies what the daemon said. */
int outcome_from_finished(struct outcome *ret, const Traced__Control__Finished *finished,
			  struct error *err);
/* Says it all (less with -q, the ledger with -v, JSON with --json). Returns the exit status. */
int outcome_tell(const struct outcome *outcome, const struct options *o);

/*
 * About how many characters of a JSON's text so many events make, which have
 * so many bytes in the stream: at most a fifth too few, two fifths too many.
 */
uint64_t json_text_estimate(const char *tracer, uint64_t events, uint64_t bytes);
