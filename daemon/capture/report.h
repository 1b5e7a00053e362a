/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of a recording that is reported: warnings and counts. Warnings go to the caller, and as
 * NOTE chunks into the stream.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "stream/writer.h"

struct capture_report {
	char **warnings;		      /* owned, as are the texts; each text once */
	size_t warning_count, warnings_noted; /* noted: in the current stream */
	uint64_t warnings_missing;	      /* bit i: warning i (of the first 64) came from
						 report_warn_missing */
	unsigned event_types;		      /* number of enabled events */
	uint64_t bytes_before;		      /* bytes of the closed streams */
	struct capture_cpu_stats *cpu_stats;  /* owned; for capture_get_stats */
};

void report_deinit(struct capture_report *r);
/* Keeps a warning, unless there is one with the same text. */
void report_warn(struct capture_report *r, const char *fmt, ...) _printf_(2, 3);
/* Like report_warn, but marks the recording incomplete: part of the request is missing. */
void report_warn_missing(struct capture_report *r, const char *fmt, ...) _printf_(2, 3);
/* Writes the warnings that are not in the stream yet. */
int report_write_notes(struct capture_report *r, struct stream_writer *w);
/* Writes one text as a NOTE chunk, cut to what a chunk holds. */
int report_write_note(struct stream_writer *w, const char *text, enum note_kind kind);
