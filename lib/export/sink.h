/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One output format, as a table of functions. A sink gets the merged events in time order and
 * writes through an output; it never sees tracefs or the stream. docs/architecture.md says how to
 * add a format.
 */
#pragma once

#include <stdbool.h>

#include "export/export.h"
#include "export/join.h"
#include "export/output.h"
#include "marks/mark.h"
#include "print/event_table.h"
#include "trace/trace_event.h"
#include "trace/trace_info.h"

struct loan;
struct mark_feed;
struct merge_gaps;
struct poll;
struct segment;
struct selection;
struct sink;
struct stream_index;
struct stream_reader;

/* The samples of a recording, for sample_reader_new(). */
struct sample_source {
	struct stream_index *index; /* gets warnings about the samples */
	const struct stream_reader *stream;
};

/* The inputs of one run, the same for each format; all borrowed. */
struct sink_env {
	const struct trace_info *info;
	const struct export_options *options;
	struct output *out;
	struct loan *loan;	       /* of the records; NULL: they are gone after the call */
	const struct mark_feed *marks; /* of applications; NULL: none */
	const struct merge_gaps *gaps; /* that the merge met */
	const struct sample_source *samples; /* NULL: none */
	struct selection *selection;	     /* NULL: the whole recording */
	bool followed;			     /* the stream was still being written at open() */
	struct segment *segment; /* ops->cut may be called, also on request: segment_fill(); or NULL
				  */
};

/*
 * Properties of an output format. All differences between formats are here and in sink_ops: no
 * other code compares their names. The exporter checks clocks, at_end and packed_goes_back before
 * it opens the sink.
 */
struct export_format {
	const char *name;      /* "json.gz" */
	const char *extension; /* file name ending that selects it: ".json.gz" */
	const char *summary;   /* for --help */
	const char *open_hint; /* how to open the file; NULL: no short way */
	const char *const
		*clocks; /* trace clocks that its readers know, NULL-terminated; NULL: any */
	/* Its usual reader, and the clocks whose times that shows as whole numbers; NULL: none. */
	const char *raw_clock_reader;
	const char *const *raw_clocks;
	unsigned packings;	/* supported compressions of its content: bits 1 << enum
				   perfetto_compression */
	bool packed_goes_back;	/* its writer seeks in the file when compressed */
	bool raw_records;	/* writes raw records: the file contains kernel addresses */
	bool at_end;		/* written only after the recording has ended */
	bool directory;		/* a directory: the output takes the frames of export/segment.h */
	bool recording;		/* the capture stream itself: nothing can be merged into it */
	bool for_terminal;	/* readable text for a terminal */
	bool one_string;	/* the kernel's text is one JSON string; viewers limit its length */
	bool has_tables;	/* shows a report beside the events */
	bool has_array;		/* can be an array of events only */
	bool perfetto_layout;	/* supports perfetto_options.legacy_generic and .plain_sched */
	bool frames_by_address; /* tells addresses in one function from each other */
	bool samples_only;	/* consists of the recording's own samples */
	bool only_live;		/* of no use once its reader is gone: the recording is not kept */
	/*
	 * The end of a file and the beginning of one, with the end's newline between: how a second
	 * segment begins. NULL-terminated; NULL: there is none, or it can't be found.
	 */
	const char *const *borders;
	const char *begins; /* first bytes of its files, if mend() does not check; or NULL */
	/* One file of several machines' parts, each an output of format `part`. NULL: none. */
	export_join_func *join;
	const char *part;
	bool host_numbers; /* its parts want export_options.numbers */
	/* Repairs a truncated file: see export/mend.h. NULL: nothing to repair. */
	int (*mend)(int fd, off_t size);
};

struct sink_ops {
	struct export_format format;
	bool gzip; /* the whole output is compressed */
	/*
	 * Of a part of a recording it wants to know who ran when that begins, and which slices were
	 * open.
	 */
	bool shows_state;
	/* It gets all that is in the time of a part, and asks env->selection for the rest.
	 */
	bool selects;
	/*
	 * NULL, or for formats that copy the stream's own bytes: copies up to the reader's offset.
	 * Their events are passed only to be counted. last: the stream is complete.
	 */
	int (*copy)(struct sink *s, const struct stream_index *index, bool last, struct error *err);
	bool has_histograms; /* those of the kernel are in the output */
	bool keeps_marks;    /* marks are part of the copied bytes */
	bool keeps_samples;  /* samples have a place, without ops->mark */
	/* env is the sink's until free(). The exporter sets (*ret)->ops. */
	int (*open)(struct sink **ret, const struct sink_env *env, struct error *err);
	int (*event)(struct sink *s, const struct trace_event *ev, struct error *err);
	/*
	 * NULL, or calls `give` until it returns 0 (all events) or -errno, and returns that. It may
	 * call from several threads, one at a time. 1: env->loan asked for a pause.
	 */
	int (*run)(struct sink *s, int (*give)(void *userdata, struct error *err), void *userdata,
		   struct error *err);
	/*
	 * Events are missing on cpu between before_ts and after_ts. count UINT64_MAX: unknown.
	 * Called right before the first event after the gap. before_ts 0: no event before; after_ts
	 * UINT64_MAX: none after (losses found only in the kernel's counts).
	 */
	int (*loss)(struct sink *s, uint32_t cpu, uint64_t before_ts, uint64_t after_ts,
		    uint64_t count, struct error *err);
	/*
	 * An application's mark; valid during the call. Frames and metadata come before the first
	 * event; marks with a time in order among the events, or, if marks_last is set, after the
	 * last event. NULL: the format has no marks.
	 */
	int (*mark)(struct sink *s, const struct mark *mark, struct error *err);
	bool marks_last;
	/* NULL, or takes a reading of polled files. Otherwise mark() gets its values as counters.
	 */
	int (*poll)(struct sink *s, const struct poll *poll, struct error *err);
	/* Number of marks dropped because the format's readers reject them; NULL: none. */
	uint64_t (*marks_left_out)(struct sink *s);
	/* NULL, or called before close: warns of what was lost for the format's readers. */
	int (*warn)(struct sink *s, struct stream_index *index);
	/*
	 * NULL, or called in a followed recording: write everything so far, however little.
	 * Afterwards task names and info may change.
	 */
	int (*sync)(struct sink *s, struct error *err);
	/*
	 * NULL: the format can't be split. Ends the current file so that it opens alone, with
	 * result, and begins the next, with output_cut() in between. Everything up to the last
	 * event's time must be in one of them.
	 */
	int (*cut)(struct sink *s, const struct export_result *result, struct error *err);
	/* NULL, or the bytes held back that are not yet in the output. */
	uint64_t (*held)(const struct sink *s);
	/*
	 * A file is limited to export_options.json_string_max characters. With sink_env.segment,
	 * the sink asks for another file before that.
	 */
	bool string_bound;
	/* Called after the last event with the final totals. */
	int (*close)(struct sink *s, const struct export_result *result, struct error *err);
	void (*free)(struct sink *s);
};

/* Embedded as the first member of each sink. */
struct sink {
	const struct sink_ops *ops;
};

/* Appends an event's name and details as event_print() does, also for events without a format. */
int sink_print(struct printer *printer, const struct trace_event *ev, struct buf *out);

/* For formats that have no events of their own: they take samples, or the stream as it is. */
int sink_skip_event(struct sink *s, const struct trace_event *ev, struct error *err);
int sink_skip_loss(struct sink *s, uint32_t cpu, uint64_t before_ts, uint64_t after_ts,
		   uint64_t count, struct error *err);

/* -EINVAL, naming the supported clocks, if readers of the format don't know that trace clock. */
int export_format_check_clock(const struct export_format *format, const char *clock,
			      struct error *err);

/*
 * -ESPIPE if the format has to seek in its file (a compressed .dat) and fd can't: a pipe, O_APPEND,
 * or not at its start. Borrows fd.
 */
int export_format_check_file(const struct export_format *format, const struct perfetto_options *o,
			     int fd, struct error *err);
