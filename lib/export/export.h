/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The only entry to the exporter: capture stream in, file out. Used by the daemon's unprivileged
 * child and by `tracectl convert`. Needs no privilege and opens nothing: it reads one descriptor
 * and writes another.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/code_place.h"
#include "base/error.h"
#include "export/selection.h"
#include "marks/input_file.h"
#include "trace/ledger.h"

struct host_clock;
struct host_numbers;
struct mark_sort;
struct report_options;
struct sink_ops;

/*
 * Longest JSON, in UTF-16 units: V8's String::kMaxLength on 64-bit machines. No browser can hold a
 * longer string. Counted are bytes, which are never fewer.
 */
#define EXPORT_JSON_MAX UINT64_C(536870888)
/* Events of one page that a browser shows at ease, see docs/html.md; least limits of a page. */
#define EXPORT_PAGE_EVENTS UINT64_C(1500000)
#define EXPORT_PAGE_EVENTS_MIN UINT64_C(1000)
#define EXPORT_PAGE_BYTES_MIN (UINT64_C(1) << 20)
/* Warning in a file without events. */
#define EXPORT_NOTHING                                                                             \
	"no event was recorded: nothing happened that was asked for, or a filter let nothing "     \
	"through"

/* Callbacks for a stream that is still being written. */
struct export_follow {
	/*
	 * Waits for more data. 1: there may be more; 0: no more will come; or -errno. The stream's
	 * bytes `from` to `to` are no longer needed; bytes before `from` are its head.
	 */
	int (*wait)(void *userdata, uint64_t from, uint64_t to);
	void *userdata;
};

enum perfetto_compression { PERFETTO_PLAIN, PERFETTO_DEFLATE, PERFETTO_ZSTD };

/*
 * Choices for a Perfetto trace; zeros suit all current readers. For a .dat only the compression
 * counts.
 */
struct perfetto_options {
	bool legacy_generic; /* write events without their own message for readers before v53 */
	bool plain_sched;    /* don't use the compact form of sched_switch and sched_waking */
	enum perfetto_compression compression; /* of the packets in the file */
};

#define EXPORT_MERGES_MAX 8
#define EXPORT_BOUND_NS 10000

/* How a JSON shows events of the function tracer (a function was called from a place). */
enum function_view {
	FUNCTION_INSTANTS, /* an instant for each call */
	FUNCTION_SLICES,   /* a slice for each run of calls from one place */
};

/* Smallest limits of export_rotate: each file repeats the head. */
#define EXPORT_ROTATE_BYTES_MIN (64U << 10)
#define EXPORT_ROTATE_NS_MIN UINT64_C(1000000)

/* When to start the next file; 0: no limit of that kind. */
struct export_rotate {
	uint64_t bytes; /* bytes of event data, as written */
	uint64_t ns;	/* time from its first event */
};

/* Limits of one HTML page. 0: EXPORT_PAGE_EVENTS or EXPORT_JSON_MAX. */
struct export_page {
	uint64_t events;
	uint64_t bytes; /* characters */
};

/* Conditions for the sink that watches a recording (report/watch.h). */
struct export_watch {
	const char *const *conditions; /* borrowed */
	size_t count;
};

struct export_options {
	const char *format; /* a name of export_formats(): "json", "json.gz", "txt" ... */
	bool raw_addresses;
	bool tgid; /* add the TGID column to the text */
	struct perfetto_options perfetto;
	enum function_view function_view;
	struct export_page page;
	bool json_array; /* JSON: write the array of events only, without text and metadata */
	/*
	 * Overrides the recorded trace options for the text, in the syntax of trace_options. NULL:
	 * none.
	 */
	const char *trace_options;
	unsigned threads;	  /* 0: one for each usable CPU, at most eight */
	uint64_t json_string_max; /* 0: EXPORT_JSON_MAX */
	const struct export_merge *merges;
	size_t merge_count; /* at most EXPORT_MERGES_MAX */
	/*
	 * NULL, or marks in the trace clock and in order, which the export takes over. They are not
	 * counted as applications' files.
	 */
	struct mark_sort **arrows;
	const struct export_profile *profiles;
	size_t profile_count; /* at most EXPORT_MERGES_MAX */
	/* Moves all times to another machine's clock; NULL: no. Not with follow. */
	const struct host_clock *host;
	/* The output is a part of a file of several machines; for formats that want it. Or NULL. */
	const struct host_numbers *numbers;
	struct export_selection selection;   /* not with follow */
	const struct report_options *report; /* for the sink of lib/report only */
	/* A report as JSON, for formats with export_format.has_tables; NULL: none. Borrowed. */
	const char *tables;
	size_t tables_len;
	bool tables_have_histograms;	      /* those of the kernel */
	const struct export_watch *watch;     /* for its sink of conditions only */
	const struct export_symbols *symbols; /* NULL: program functions have no names */
	/* Largest accepted error of a clock tie in ns, without a warning; 0: EXPORT_BOUND_NS. */
	uint64_t bound_max_ns;
	/* An unnamed file for sorted runs that exceed memory; 0: none. */
	int scratch_fd;
	/*
	 * The file that import_stream() made the stream from, if sub-buffers are still in it; 0:
	 * none.
	 */
	int pages_fd;
	struct stream_part part;	    /* bytes 0: the whole stream. Not with follow */
	uint64_t skip_from;		    /* as in index_options; only with follow */
	const struct export_follow *follow; /* NULL: the stream is complete. Not with merges. */
	/* If set, out_fd receives the frames of export/segment.h. */
	struct export_rotate rotate;
	/*
	 * What its readers can't open as one JSON or page becomes several, one behind the other in
	 * the output: export_result.segment_ends. Else such an export fails. Not with profiles.
	 */
	bool segments;
	/*
	 * NULL, or called a few times per second with the progress, 0 to 1. Any thread may call it,
	 * one at a time.
	 */
	void (*progress)(void *userdata, double done);
	void *userdata;
};

struct export_fallback {
	char *event; /* "system:event"; owned */
	char *why;
	uint64_t count;
};

struct export_result {
	uint64_t events, lost, bytes;
	uint64_t own_events; /* how many of these are the recorder's clock marks */
	uint64_t span_ns;
	/* The most by which the begins of two machines' recordings may differ; 0: unknown. */
	uint64_t begins_apart_ns;
	uint64_t histograms; /* number of events whose histograms are in the file */
	uint64_t marks;	     /* number of application marks in the file */
	/* Owned; with export_options.segments: where each segment but the last ends in the output.
	 */
	uint64_t *segment_ends;
	size_t segment_count; /* of segment_ends: one less than there are */
	unsigned event_types;
	char *clock; /* owned; the recording's trace clock */
	uint64_t fallback_events;
	bool incomplete; /* the stream was truncated, or a source failed */
	bool marks_lost; /* applications made more marks */
	uint64_t export_ns, cpu_ns, peak_rss_bytes;
	char **warnings; /* owned */
	size_t warning_count;
	struct ledger_row *ledger; /* owned; one per CPU */
	size_t ledger_count;
	struct export_fallback *fallbacks; /* owned */
	size_t fallback_count;
};
void export_result_deinit(struct export_result *r);
/* Places where events were lost, counted or not. */
uint64_t export_result_gaps(const struct export_result *r);
#define _cleanup_export_result_ _cleanup_(export_result_deinit)

/*
 * stream_fd: seekable; its offset does not matter. out_fd: writable from its start; a file, pipe or
 * terminal.
 *
 * On failure the caller discards the output. -EBADMSG: no stream, or its head is damaged;
 * -EOVERFLOW: too much for the format (the hint names a better one); -EFBIG, -ENOSPC...: writing
 * failed. A stream truncated after its head is exported up to there and marked incomplete.
 *
 * With `follow`, events are written once a FLUSH chunk guarantees their order. Task names are those
 * known by then.
 */
int export_run(const struct sink_ops *ops, int stream_fd, int out_fd,
	       const struct export_options *options, struct export_result *ret, struct error *err);
