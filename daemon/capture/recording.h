/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ownership and order. A capture has three parts, and each function takes the smallest that it
 * needs. The setup owns the plan (and so two tracefs instances) and its journal, the run owns the
 * readers, the report owns the warnings. They are undone in reverse: readers close before the
 * instances are removed (open files and mappings hold them), and the journal goes last, only if
 * everything was undone.
 *
 * The rings come first: a dispatch moves sub-buffers, then does at most one slice of other work
 * (names, tasks, symbols), so no ring waits for more than a slice.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/setup.h"
#include "daemon/capture/report.h"
#include "daemon/capture/run.h"

struct capture_making;

struct capture {
	struct capture_making *making; /* NULL: capture_arm() is over */
	struct capture_setup setup;
	struct capture_run run;
	struct capture_report report;
};

/* When a slice ends that begins now: CLOCK_MONOTONIC, ns. */
uint64_t capture_slice_end(const struct capture *c);
/* Writes the head of every stream: header and layout. */
int capture_begin_stream(struct capture *c, int fd);
/* Turns tracing on or off in both instances. */
int capture_set_tracing(struct capture *c, bool on);
/* True if the main instance is off, though nothing of the request may do that. */
bool capture_was_turned_off(const struct capture *c);
/* True if the kernel turned tracing off at the requested threshold, or by a trigger. */
bool capture_went_off(const struct capture *c);
/* Somebody else turned it off: later events are in no count. */
void capture_warn_of_off(struct capture *c);
/* Starts a scan of programs' mappings, continued by capture_background_slice. */
void capture_scan_mappings(struct capture *c);
/* Writes the recorder's own sync first: it ties the trace clock to the stream's clock snapshots. */
void capture_sync_start(struct capture *c);
/* Has histograms of events by SQL count, by a mark that stays in the ring. */
int capture_start_counting(struct capture *c);
/*
 * Does one slice of mappings, names, tasks or symbols. Returns 1 if there is more. If it may not
 * block, a process that does not tell its mappings at once is asked again later.
 */
int capture_background_slice(struct capture *c, bool block);
/*
 * Keeps the recording below its CPU limit; call at each tick. -ETIME: the recording has to end.
 */
int capture_keep_overhead(struct capture *c, uint64_t now_ns, struct error *err);
