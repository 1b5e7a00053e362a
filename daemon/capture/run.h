/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The part of a recording that moves while it records: readers, stream, deadlines. */
#pragma once

#include <stdatomic.h>

#include "daemon/capture/clocks.h"
#include "daemon/capture/names/mappings.h"
#include "daemon/capture/names/names.h"
#include "daemon/capture/overhead.h"
#include "daemon/capture/plan/hists.h"
#include "daemon/capture/plan/targets.h"
#include "daemon/capture/polls/poller.h"
#include "daemon/capture/rings/ring.h"
#include "daemon/capture/rings/sampler.h"

/*
 * Progress of a streamed recording's flush: CPU by CPU of the main ring, then of the tasks' ring.
 * So a task's birth is in the stream before the FLUSH that covers its events.
 */
struct flush {
	bool under_way;
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

struct capture_run {
	struct ring rings[BUFFER_COUNT];
	struct staging staging;
	struct sampler sampler;	 /* hz 0: no samples */
	struct poller *poller;	 /* owned; NULL: no files are polled */
	struct targets *targets; /* owned; NULL: not limited to processes */
	int clock_watch;	 /* -EBADF: clock steps are noticed only at the periodic readings */
	int epfd;
	int marker; /* the main buffer's trace_marker, or -errno */
	int copies; /* its options/copy_trace_marker, or -errno; -EBADF: not wanted */

	/* Work for when the rings are empty. */
	struct names names;
	bool names_done;
	struct seen_events seen;  /* events in the main ring, if needed */
	struct task_scan rescan;  /* without a tasks' ring */
	struct task_memory known; /* likewise */
	struct mapping_scan mappings;

	struct stream_writer writer;
	bool preparing, prepared, running, streaming;
	atomic_bool off; /* we turn tracing off, or have done so */
	bool off_before; /* somebody else had done so */
	bool hit;	 /* the kernel ended it, which is not reported yet */
	int off_error;
	bool full; /* the stream limit is reached: sub-buffers read since then are not in it */
	atomic_bool watched;	   /* an exporter follows, as in a streamed recording */
	struct flush flush;	   /* of a followed recording */
	int hist_files[HISTS_MAX]; /* that a follower has last; -EBADF: none */
	struct clock_snapshot clocks_start;
	struct sync *syncs; /* owned */
	size_t sync_count, syncs_written;

	uint64_t start_boot_ns, tick_ns, next_tick, next_stats, next_clocks, next_hists;
	uint64_t wait_ns;	 /* between the last tick and the next */
	uint64_t subbufs_before; /* taken up to the last tick */
	bool lacking;		 /* a CPU may come online */
	struct overhead overhead;
	uint64_t cpu_ns; /* CPU time spent so far */
};

#define RUN_INIT                                                                                   \
	((struct capture_run){ .rings = { [0 ... BUFFER_COUNT - 1] = { .dir = -EBADF,              \
								       .online_fd = -EBADF,        \
								       .switch_fd = -EBADF } },    \
			       .marker = -EBADF,                                                   \
			       .copies = -EBADF,                                                   \
			       .staging = STAGING_INIT,                                            \
			       .clock_watch = -EBADF,                                              \
			       .hist_files = { [0 ... HISTS_MAX - 1] = -EBADF },                   \
			       .epfd = -EBADF,                                                     \
			       .names = NAMES_INIT,                                                \
			       .rescan = TASK_SCAN_INIT,                                           \
			       .mappings = MAPPING_SCAN_INIT })
int run_init(struct capture_run *run, const struct capture_overhead *overhead, struct error *err);
void run_deinit(struct capture_run *run);

/* Tags in the epoll set, beside the rings' buffer numbers. */
#define RUN_SAMPLER_TAG BUFFER_COUNT
#define RUN_CLOCKS_TAG (BUFFER_COUNT + 1)

/* Writes the readings that the poller has made. */
int run_take_polls(struct capture_run *run);
/* Turns tracing on or off in one instance. */
int run_set_ring(struct capture_run *run, enum subbufs_buffer buffer, bool on);
/* Writes the clocks, syncs and counts of the recording's start. */
int run_write_start(struct capture_run *run);
/* Writes both rings' counts as STATS chunks. */
int run_write_counts(struct capture_run *run, enum clock_phase phase);
/* Writes a reading of the clocks. */
int run_write_clocks(struct capture_run *run);
/* Writes a FLUSH chunk: the rings were read to their end, or not yet at all. */
int run_write_flush(struct capture_run *run);
/* Continues a due flush, within a budget. Returns 1 if there is more. */
int run_flush(struct capture_run *run, uint64_t now);
/* Writes the readings of the syncs that are not in the stream yet. */
int run_write_syncs(struct capture_run *run);
void run_forget_syncs(struct capture_run *run);
