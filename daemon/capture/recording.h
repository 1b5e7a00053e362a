/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ownership and order. A capture owns its plan (and so two tracefs instances), its journal and its
 * readers. They are undone in reverse: readers close before the instances are removed (open files
 * and mappings hold them), and the journal goes last, only if everything was undone.
 *
 * The rings come first: a dispatch moves sub-buffers, then does at most one slice of other work
 * (names, tasks, symbols), so no ring waits for more than a slice.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/clocks.h"
#include "daemon/capture/names/mappings.h"
#include "daemon/capture/names/names.h"
#include "daemon/capture/overhead.h"
#include "daemon/capture/plan/probes.h"
#include "daemon/capture/plan/request.h"
#include "daemon/capture/rings/ring.h"

/*
 * Progress of a streamed recording's flush: CPU by CPU of the main ring, then of the tasks' ring.
 * So a task's birth is in the stream before the FLUSH that covers its events.
 */
struct flush {
	bool wanted, under_way;
	bool with_counts; /* STATS chunks are due */
	unsigned buffer, cpu;
	uint64_t moved, most; /* sub-buffers of the current CPU; most 0: not known yet */
	uint64_t next, count; /* next: CLOCK_BOOTTIME; count: FLUSH chunks written */
};

/* A mark that ties clocks, kept for later streams. */
struct sync {
	struct clock_sync_mark mark; /* its id is owned */
	struct clock_snapshot clocks;
};

struct capture {
	struct capture_env env;
	struct plan plan;
	struct journal journal;
	struct event_matches matches;
	struct probe_list probes;
	struct capture_event_spec *specs; /* owned: the request's and the probes' */
	char instance[INSTANCE_NAME_MAX], tasks[INSTANCE_NAME_MAX];
	const char *main; /* the instance; NULL: the top level */
	bool has_tasks;
	bool ring_mode;
	bool wants_mappings; /* for user stacks: read at start and end */
	bool may_go_off;     /* a requested function trigger may turn tracing off */
	uint64_t stream_limit;
	struct cpu_set cpus; /* bits NULL: all */

	struct ring rings[BUFFER_COUNT];
	struct seen_events seen; /* events in the main ring, if needed */
	struct staging staging;
	int epfd;

	struct buf header, header_page;
	uint8_t uuid[16];
	struct names names;
	bool names_done;
	struct task_scan rescan;  /* without a tasks' ring */
	struct task_memory known; /* likewise */
	struct sampler sampler;	  /* hz 0: no samples */
	struct mapping_scan mappings;

	struct stream_writer writer;
	bool streaming, running;
	struct flush flush; /* of a streamed recording */
	bool full; /* the stream limit is reached: sub-buffers read since then are not in it */
	struct clock_snapshot clocks_start;
	int clock_watch;    /* -EBADF: clock steps are noticed only at the periodic readings */
	struct sync *syncs; /* owned */
	size_t sync_count;
	uint64_t tick_ns, start_boot_ns, next_tick, next_stats, next_clocks;
	struct overhead overhead;
	uint64_t cpu_ns, bytes_before; /* sums over the closed streams */

	char **warnings;
	size_t warning_count, warnings_noted;
	uint64_t warnings_missing; /* bit i: warning i (of the first 64) came from
				      capture_warn_missing */
	struct capture_cpu_stats *cpu_stats;
	unsigned event_types;
};

/* Keeps a warning for the caller and for the stream; each text once. */
void capture_warn(struct capture *c, const char *fmt, ...) _printf_(2, 3);
/* Like capture_warn, but marks the recording incomplete: part of the request is missing. */
void capture_warn_missing(struct capture *c, const char *fmt, ...) _printf_(2, 3);
/* Writes the warnings that are not in the stream yet as NOTE chunks. */
int capture_write_notes(struct capture *c);

/* Writes the head of every stream: header, layout and the clocks at the start. */
int capture_begin_stream(struct capture *c, int fd);
/* Continues a due flush, within a budget. Returns 1 if there is more. */
int capture_flush_slice(struct capture *c, uint64_t now);
/* Writes both rings' counts as STATS chunks. */
int capture_write_counts(struct capture *c, enum clock_phase phase);
/* Warns if somebody else turned the main instance off: later events are in no count. */
void capture_check_on(struct capture *c);
/* Tags in the epoll set, beside the rings' buffer numbers. */
#define CAPTURE_SAMPLER_TAG BUFFER_COUNT
#define CAPTURE_CLOCKS_TAG (BUFFER_COUNT + 1)
/* Opens the sampler, if samples were requested. */
int capture_sampling_open(struct capture *c, const struct capture_request *request,
			  struct error *err);
int capture_sampling_start(struct capture *c);
/* Starts a scan of programs' mappings, continued by capture_background_slice. */
void capture_scan_mappings(struct capture *c);
int capture_sampling_stop(struct capture *c);
/* Turns both instances on or off. */
int capture_turn(struct capture *c, bool on);
/* Writes the recorder's own sync first: it ties the trace clock to the stream's clock snapshots. */
void capture_sync_start(struct capture *c);
/* Writes the readings of all syncs so far. */
int capture_write_syncs(struct capture *c);
void capture_forget_syncs(struct capture *c);
/* Does one slice of names, tasks or symbols. Returns 1 if there is more. */
int capture_background_slice(struct capture *c);
