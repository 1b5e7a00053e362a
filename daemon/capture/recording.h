/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ownership and order. A capture owns its plan (and by it two tracefs
 * instances), its journal, its readers. What undoes them runs backwards:
 * readers are closed before the instances go (open files and mappings hold
 * them), the journal goes last, and only if everything was undone.
 *
 * The rings come first: a dispatch moves sub-buffers, then does at most one
 * slice of everything else (names, tasks, symbols), so that no ring waits for
 * more than a slice.
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
 * Where a streamed recording's flush is: CPU by CPU of the main ring, then of the
 * tasks' ring. So a birth is in the stream before the FLUSH that an event of the task is.
 */
struct flush {
	bool wanted, under_way;
	bool with_counts; /* a STATS chunk is due */
	unsigned buffer, cpu;
	uint64_t moved, most; /* sub-buffers of this CPU; most 0: not yet known */
	uint64_t next, count; /* count: FLUSH chunks written */
};

/* A mark that ties clocks, for the streams that are still to come. */
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
	struct capture_event_spec *specs; /* owned: of the request and of the probes */
	char instance[INSTANCE_NAME_MAX], tasks[INSTANCE_NAME_MAX];
	const char *main; /* the instance; NULL: the top level */
	bool has_tasks;
	bool ring_mode;
	bool wants_mappings; /* for programs' stacks: read as it begins and as it ends */
	bool may_go_off;     /* a function's trigger turns it off, as it was asked to */
	uint64_t stream_limit;
	struct cpu_set cpus; /* bits NULL: all */

	struct ring rings[BUFFER_COUNT];
	struct seen_events seen; /* in the main one, where it is asked for */
	struct staging staging;
	int epfd;

	struct buf header, header_page;
	uint8_t uuid[16];
	struct names names;
	bool names_done;
	struct task_scan rescan;  /* where there is no task ring */
	struct task_memory known; /* the same */
	struct sampler sampler;	  /* hz 0: no samples */
	struct mapping_scan mappings;

	struct stream_writer writer;
	bool streaming, running;
	struct flush flush; /* of a streamed recording */
	bool full;	    /* the stream's limit was hit: what was read since is not in it */
	struct clock_snapshot clocks_start;
	int clock_watch;    /* -EBADF: the clocks are read every few seconds only */
	struct sync *syncs; /* owned */
	size_t sync_count;
	uint64_t tick_ns, start_boot_ns, next_tick, next_stats, next_clocks;
	struct overhead overhead;
	uint64_t cpu_ns, bytes_before; /* of the streams that are closed */

	char **warnings;
	size_t warning_count, warnings_noted;
	uint64_t warnings_missing; /* of the first 64, by bit: capture_warn_missing */
	struct capture_cpu_stats *cpu_stats;
	unsigned event_types;
};

/* Keeps a warning for the caller and for the stream; each is said once. */
void capture_warn(struct capture *c, const char *fmt, ...) _printf_(2, 3);
/* The same where part of what was asked for is not in the stream: the recording is incomplete. */
void capture_warn_missing(struct capture *c, const char *fmt, ...) _printf_(2, 3);
/* Writes the warnings that the stream does not have yet as NOTE chunks. */
int capture_write_notes(struct capture *c);

/* Header, layout and the clocks at the start: the head of every stream. */
int capture_begin_stream(struct capture *c, int fd);
/* Goes on with a flush if one is due, within a budget. 1: there is more. */
int capture_flush_slice(struct capture *c, uint64_t now);
/* Both rings' counts, as STATS chunks. */
int capture_write_counts(struct capture *c, enum clock_phase phase);
/* Warns if somebody else turned the main instance off: what came after it is in no count. */
void capture_check_on(struct capture *c);
/* In the epoll set, where a ring's buffer stands. */
#define CAPTURE_SAMPLER_TAG BUFFER_COUNT
#define CAPTURE_CLOCKS_TAG (BUFFER_COUNT + 1)
/* The samples, where some were asked for. */
int capture_sampling_open(struct capture *c, const struct capture_request *request,
			  struct error *err);
int capture_sampling_start(struct capture *c);
/* What programs have mapped, in slices: capture_background_slice. */
void capture_scan_mappings(struct capture *c);
int capture_sampling_stop(struct capture *c);
/* Both instances on or off. */
int capture_turn(struct capture *c, bool on);
/* The first sync, the recorder's own: it ties the trace's clock to the stream's snapshots. */
void capture_sync_start(struct capture *c);
/* What the syncs read until now. */
int capture_write_syncs(struct capture *c);
void capture_forget_syncs(struct capture *c);
/* One slice of names, tasks, symbols. 1: there is more. */
int capture_background_slice(struct capture *c);
