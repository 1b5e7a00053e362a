/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One output format: a small vtable. A sink gets the merged events in time
 * order and writes through an output; it never sees tracefs or the stream.
 * Adding a format is one file and one line in sinks.c.
 */
#pragma once

#include <stdbool.h>

#include "export/export.h"
#include "export/output.h"
#include "marks/mark.h"
#include "print/event_table.h"
#include "trace/trace_event.h"
#include "trace/trace_info.h"

struct loan;
struct mark_feed;
struct sink;
struct stream_index;
struct stream_reader;

/* The samples of a recording, for sample_reader_new(). */
struct sample_source {
	const struct stream_index *index;
	const struct stream_reader *stream;
};

/* What one run gives a sink, besides what the trace says; all borrowed. */
struct sink_env {
	const struct trace_info *info;
	const struct export_options *options;
	struct output *out;
	struct loan *loan;	       /* of the records; NULL: they are gone after the call */
	const struct mark_feed *marks; /* of applications; NULL: none */
	const struct sample_source *samples; /* NULL: none */
	bool followed;			     /* the stream was still being written at open() */
};

/*
 * What a person and the rest of the program need to know of an output format. All that differs
 * between formats is here and in sink_ops: nothing else compares their names.
 */
struct export_format {
	const char *name;	   /* "json.gz" */
	const char *extension;	   /* ".json.gz": the file name ending that chooses it */
	const char *summary;	   /* for help */
	const char *open_hint;	   /* how a person opens the file; NULL: there is no short way */
	const char *const *clocks; /* trace clocks that its readers know, up to a NULL; NULL: any */
	unsigned packings;     /* bits 1 << enum perfetto_compression that its content may have */
	bool packed_goes_back; /* so packed, its writer seeks in the file */
	bool raw_records;      /* as the kernel wrote them: its addresses are in the file */
	bool at_end;	       /* written when the recording has ended, never while it goes on */
	bool directory;	       /* of files: the output gets the frames of export/segment.h */
	bool recording;	       /* the capture stream itself: nothing can be merged into it */
	bool for_terminal;     /* people may read it as it is */
	bool one_string;       /* the kernel's text is one JSON string, which viewers bound */
	bool has_array;	       /* may be an array of events alone */
	bool perfetto_layout;  /* takes perfetto_options.legacy_generic and .plain_sched */
	bool samples_only;     /* made of the recording's own samples */
	const char *begins;    /* what its files begin with, if mend() does not check; or NULL */
	/* Mends a cut file: see export/mend.h. NULL: all of it is kept. */
	int (*mend)(int fd, off_t size);
};

struct sink_ops {
	struct export_format format;
	bool gzip; /* the output is compressed */
	/*
	 * NULL, or of formats that are made of the stream's own bytes, whose events are given for
	 * nothing but their account: what lies before the reader's offset is there; last: it is
	 * all.
	 */
	int (*copy)(struct sink *s, const struct stream_index *index, bool last, struct error *err);
	bool keeps_marks;   /* they are in those bytes */
	bool keeps_samples; /* has a place for them, without ops->mark */
	/* env is the sink's until free(). */
	int (*open)(struct sink **ret, const struct sink_env *env, struct error *err);
	int (*event)(struct sink *s, const struct trace_event *ev, struct error *err);
	/*
	 * NULL, or: calls give until it returns 0 (all was given) or -errno, which it returns too;
	 * in several threads, one at a time. 1: env->loan asked for a pause.
	 */
	int (*run)(struct sink *s, int (*give)(void *userdata, struct error *err), void *userdata,
		   struct error *err);
	/*
	 * Events are missing on cpu between before_ts and after_ts; count UINT64_MAX: not known.
	 * Comes right before the first event after the gap; before_ts 0: none went before;
	 * after_ts UINT64_MAX: none follows (losses that only the kernel's counts told of).
	 */
	int (*loss)(struct sink *s, uint32_t cpu, uint64_t before_ts, uint64_t after_ts,
		    uint64_t count, struct error *err);
	/*
	 * A mark of an application; valid during the call. What describes others comes before the
	 * first event, what has a time among the events in its order, or all of it behind
	 * the last event where marks_last is set. NULL: the format has no place for marks.
	 */
	int (*mark)(struct sink *s, const struct mark *mark, struct error *err);
	bool marks_last;
	/* Of the marks given so far those that the format's readers would not take; NULL: none. */
	uint64_t (*marks_left_out)(struct sink *s);
	/*
	 * Of a recording that goes on, NULL or: what was given so far is to be handed out, however
	 * little it is. From here on tasks may have other names, and info more of all.
	 */
	int (*sync)(struct sink *s, struct error *err);
	/*
	 * NULL: it can't be, or: what was given so far, to which result belongs, is to be a file
	 * that opens alone, and what comes another; with output_cut between them. Nothing before
	 * the last event's time is missing from either.
	 */
	int (*cut)(struct sink *s, const struct export_result *result, struct error *err);
	/* NULL, or the bytes that it has made and not given to the output. */
	uint64_t (*held)(const struct sink *s);
	/* It holds no more than export_options.json_string_max characters. */
	bool string_bound;
	/* All events were given; the totals are known. */
	int (*close)(struct sink *s, const struct export_result *result, struct error *err);
	void (*free)(struct sink *s);
};

/* A sink embeds this as its first member. */
struct sink {
	const struct sink_ops *ops;
};

/* Appends an event's name and details as event_print does, also of an event without a format. */
int sink_print(struct printer *printer, const struct trace_event *ev, struct buf *out);

/* -EINVAL, and which clocks do, if a file of that format in that trace clock can't be read. */
int export_format_check_clock(const struct export_format *format, const char *clock,
			      struct error *err);

/*
 * -ESPIPE if the format, so written, has to go back in its file (a compressed .dat), and fd can't:
 * a pipe, what is opened for appending, or is not at its start. Borrows fd.
 */
int export_format_check_file(const struct export_format *format, const struct perfetto_options *o,
			     int fd, struct error *err);
