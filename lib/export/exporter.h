/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inside of export.c and summary.c: one export, from its stream to its sink. */
#pragma once

#include "export/export.h"
#include "export/mark_feed.h"
#include "export/segment.h"
#include "trace/event_head.h"
#include "trace/ledger.h"
#include "trace/merge.h"

#define EVENT_IDS 65536

struct event_kind {
	const struct event *desc; /* NULL: it has none yet */
	uint64_t count;		  /* how often it was met */
	bool special;		  /* the recorder's mark may be one, or the next record matters */
};

struct exporter {
	const struct export_options *options;
	struct stream_reader reader;
	struct stream_index index;
	struct task_feed *tasks; /* owned */
	struct merge *merge;	 /* owned */
	uint64_t data_from;	 /* of a followed stream: where its head ends */
	bool no_more;		 /* nothing is appended to it any more */
	bool full;		 /* the format holds no more of it */
	struct ledger ledger;
	struct output out;
	const struct sink_ops *ops;
	struct sink *sink;
	struct sample_source samples;
	struct mark_feed *marks; /* owned; NULL: there are none */
	struct mark mark;	 /* the next one */
	bool have_mark;
	uint64_t mark_ts; /* kernel events after it have to wait for it; UINT64_MAX: for none */
	struct event_kind *kinds; /* owned; EVENT_IDS */
	unsigned kinds_end;	  /* above the ids of all that were met */
	struct event_head head;
	struct loan loan;
	struct sink_env env;
	struct ledger_cpu *row; /* of the last event; NULL: to be found */
	uint64_t first_ts, last_ts;
	bool rotates; /* the output is cut in segments */
	struct segment segment;
	bool after_loss;  /* which was told, but not the event behind it */
	unsigned untold;  /* events since the clock was looked at */
	uint64_t told_ns; /* when progress was told last, CLOCK_MONOTONIC */
	const struct event *print;
	uint64_t own_events;
	uint64_t too_short; /* records without room for the common fields */
	uint64_t late;	    /* given out behind younger ones, as they were known late */
};

/* Warns of what the recorder noted, and of clocks that are tied loosely. Before the ledger is
 * closed. */
void summary_take_notes(struct exporter *x);
/* Fills in ret before the sink is closed, which writes it, too: all but what closing costs. */
int summary_make(struct exporter *x, struct export_result *ret);
/* Adds what was only seen while it closed: its last lines may be the first that need the symbols.
 */
int summary_amend(struct exporter *x, struct export_result *ret);
