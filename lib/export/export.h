/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Capture stream in, file out: the one entry to the exporter, used by the
 * daemon's unprivileged child and by `tracectl convert`. Needs no privilege,
 * opens nothing: it reads one descriptor and writes another.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/code_place.h"
#include "base/error.h"
#include "marks/input_file.h"
#include "trace/ledger.h"

/*
 * UTF-16 units of the text in a JSON: V8's String::kMaxLength on 64-bit
 * machines. No viewer in a browser can hold more.
 */
#define EXPORT_JSON_MAX UINT64_C(536870888)
/* The warning that a file without events has in it. */
#define EXPORT_NOTHING                                                                             \
	"no event was recorded: nothing happened that was asked for, or a filter let nothing "     \
	"through"
/* For a stream that is still being written. */
struct export_follow {
	/*
	 * Waits for more of the stream: 1: there may be some; 0: no more will come; or -errno.
	 * Bytes from `from` to `to` are not needed any more: what is before is the stream's head.
	 */
	int (*wait)(void *userdata, uint64_t from, uint64_t to);
	void *userdata;
};

enum perfetto_compression { PERFETTO_PLAIN, PERFETTO_DEFLATE, PERFETTO_ZSTD };

/*
 * How a Perfetto trace is written; zeros suit every reader of today. Of a .dat compression alone
 * counts.
 */
struct perfetto_options {
	bool legacy_generic; /* events without a message of their own for readers before v53 */
	bool plain_sched;    /* no compact form of sched_switch and sched_waking */
	enum perfetto_compression compression; /* of packets, within the file */
};

#define EXPORT_MERGES_MAX 8
#define EXPORT_BOUND_NS 10000

/* How a JSON shows what the function tracer tells: a function was entered, and from where. */
enum function_view {
	FUNCTION_INSTANTS, /* one for each call */
	FUNCTION_SLICES,   /* one for each run of calls from one place */
};

/* When a file is followed by another; 0: not for that reason. */
/* Less makes no sense: each file has a head. */
#define EXPORT_ROTATE_BYTES_MIN (64U << 10)
#define EXPORT_ROTATE_NS_MIN UINT64_C(1000000)

struct export_rotate {
	uint64_t bytes; /* of events in the file, as it is written */
	uint64_t ns;	/* from its first event on */
};

/* Of a profile: which samples; zeros: all. */
struct export_sample_filter {
	const int32_t *pids; /* of processes or threads */
	size_t pid_count;
	const char *comm;	    /* of the thread, or of its process; NULL: any */
	const struct cpu_set *cpus; /* NULL: all */
};

struct export_options {
	const char *format; /* a name from export_formats(): "json", "json.gz", "txt" ... */
	bool raw_addresses;
	bool tgid; /* the TGID column in the text */
	struct perfetto_options perfetto;
	enum function_view function_view;
	bool json_array; /* a JSON's events alone, without the kernel's text and all that is beside
			  */
	/* NULL, or words as in trace_options: the text as with these instead of the recorded ones.
	 */
	const char *trace_options;
	unsigned threads;	  /* 0: one for each CPU that the caller may use, eight at most */
	uint64_t json_string_max; /* 0: EXPORT_JSON_MAX */
	const struct export_merge *merges;
	size_t merge_count; /* EXPORT_MERGES_MAX at most */
	const struct export_profile *profiles;
	size_t profile_count; /* EXPORT_MERGES_MAX at most */
	struct export_sample_filter samples;
	const struct export_symbols *symbols; /* NULL: functions of programs have no names */
	/* A tie of clocks that may be wrong by more is warned of, ns; 0: EXPORT_BOUND_NS. */
	uint64_t bound_max_ns;
	/* An unnamed file for what memory does not hold of them; 0: none. */
	int scratch_fd;
	/* What the stream was made of by import_stream(), which it leaves its sub-buffers in; 0:
	 * none. */
	int pages_fd;
	const struct export_follow *follow; /* NULL: the stream is whole; without merges */
	/* Set: out_fd gets the frames of export/segment.h. */
	struct export_rotate rotate;
	/* NULL, or told a few times a second how far it is, 0 to 1; in any thread, one at a time.
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
	uint64_t own_events; /* of these are the recorder's: the mark that ties the clocks */
	uint64_t span_ns;
	uint64_t marks; /* of applications, in the file */
	unsigned event_types;
	uint64_t fallback_events;
	bool incomplete; /* the stream was cut, or a source failed */
	uint64_t export_ns, cpu_ns, peak_rss_bytes;
	char **warnings; /* owned */
	size_t warning_count;
	struct ledger_row *ledger; /* owned; one a CPU */
	size_t ledger_count;
	struct export_fallback *fallbacks; /* owned */
	size_t fallback_count;
};
void export_result_deinit(struct export_result *r);
#define _cleanup_export_result_ _cleanup_(export_result_deinit)

/*
 * stream_fd: seekable, at any offset. out_fd: for writing from its start; a
 * file, pipe or terminal. On failure what was written to out_fd is of no use
 * (the caller throws it away): -EBADMSG no stream or damaged at its head;
 * -EOVERFLOW the format can't hold that much (the hint says which can); -EFBIG,
 * -ENOSPC...: out_fd takes no more.
 * A stream that was cut later is exported up to there, marked incomplete.
 *
 * With follow, events are written as the stream's FLUSH chunks vouch for them,
 * and tasks have the names that are known by then.
 */
struct sink_ops;
int export_run(const struct sink_ops *ops, int stream_fd, int out_fd,
	       const struct export_options *options, struct export_result *ret, struct error *err);
