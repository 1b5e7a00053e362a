/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Everything in a stream but its events: machine, request, clocks, tasks, kernel counts. The index
 * (index.c, info_messages.c) owns it and fills it before the first event is decoded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "print/event_table.h"
#include "proto/capture.pb-c.h"
#include "trace/page.h"
#include "trace/sync_scan.h"
#include "trace/task_table.h"

struct host_clock;
struct host_numbers;

struct trace_info {
	Traced__Capture__Header *header; /* owned; not NULL once the index is loaded */
	/*
	 * Id in the recorder's own mark in the kernel's ring, "trace_event_clock_sync: name=ID";
	 * "": the recording has none.
	 */
	char sync_id[24];
	struct page_layout layout, tasks_layout; /* of BUFFER_TASKS */
	struct text_options text;
	struct event_table *events;		/* owned, sealed */
	struct task_table *tasks;		/* owned */
	Traced__Capture__Tasks **task_readings; /* owned, in stream order */
	size_t task_reading_count, task_reading_cap;
	Traced__Capture__Clocks **clocks; /* owned, in stream order */
	size_t clock_count, clock_cap;
	Traced__Capture__Stats *
		*stats; /* owned, in stream order, of BUFFER_MAIN; at most one periodic */
	size_t stats_count, stats_cap;
	Traced__Capture__Sampler *sampler; /* NULL: no samples */
	Traced__Capture__Mappings **mappings;
	size_t mapping_count, mapping_cap;
	Traced__Capture__SampleCounts *sample_counts; /* NULL: not recorded */
	Traced__Capture__LastBoot *last_boot;	      /* NULL: the recording is of one boot */
	Traced__Capture__Histogram **histograms;      /* owned; the last one of each event */
	size_t histogram_count, histogram_cap;
	Traced__Capture__Note **notes;
	size_t note_count, note_cap;
	Traced__Capture__End *end; /* NULL: the stream was not closed */
	/* Times were moved by this clock, to another machine's; NULL: they are the recorded ones.
	 */
	const struct host_clock *moved;
	/* The output is part of a file of several machines, as one of these; NULL: it is not. */
	const struct host_numbers *host;
	struct sync_scan syncs; /* filled by sync_scan_once(), where something needs them */
};

/* True for a trace clock that counts something else than nanoseconds ("uptime" steps, but in ns).
 */
static inline bool trace_clock_counts(const char *clock)
{
	return !strcmp(clock, "counter") || !strcmp(clock, "x86-tsc") || !strcmp(clock, "ppc-tb");
}
