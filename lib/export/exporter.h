/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internal to export.c, give.c and summary.c: the state of one export. */
#pragma once

#include "export/export.h"
#include "export/mark_feed.h"
#include "export/segment.h"
#include "export/selection.h"
#include "trace/event_head.h"
#include "trace/ledger.h"
#include "trace/merge.h"

struct event_kind {
	const struct event *desc; /* NULL: no format yet */
	uint64_t count;		  /* number of events */
	bool special; /* needs care: may be the recorder's mark, or is paired with the next record
		       */
};

struct exporter {
	const struct export_options *options;
	struct stream_reader reader;
	struct stream_index index;
	struct task_feed *tasks; /* owned */
	struct merge *merge;	 /* owned */
	uint64_t data_from;	 /* followed stream: end of its head */
	bool no_more;		 /* the stream will not grow */
	bool full;		 /* the format can hold no more */
	struct ledger ledger;
	struct output out;
	const struct sink_ops *ops;
	struct sink *sink;
	struct sample_source samples;
	struct mark_feed *marks; /* owned; NULL: no marks */
	struct mark mark;	 /* the next mark */
	struct buf poll_text;	 /* owned */
	bool have_mark;
	uint64_t mark_ts; /* time of `mark`: later kernel events wait for it; UINT64_MAX: no mark */
	struct event_kind *kinds; /* owned; EVENT_IDS */
	unsigned kinds_end;	  /* all ids met so far are below */
	struct event_head head;
	struct loan loan;
	struct sink_env env;
	struct ledger_cpu *row; /* ledger row of the last event; NULL: look it up */
	uint64_t first_ts, last_ts;
	struct selection *selection; /* owned; NULL: all */
	struct selection *gate; /* the same, or NULL: the sink reads samples, and selects them */
	bool selection_began, marks_began; /* its state was passed on */
	bool rotates;			   /* the output is frames of segments */
	struct segment segment;
	uint64_t reopen_ts;   /* when the segment, or the selection, begins */
	bool reopens;	      /* it needs the begins of slices that are open */
	bool after_loss;      /* a loss was passed on, its event not yet */
	unsigned unreported;  /* events since the clock was read last */
	uint64_t reported_ns; /* last progress report, CLOCK_MONOTONIC */
	const struct event *print;
	uint64_t own_events;
	uint64_t too_short; /* records shorter than the common fields */
	uint64_t late;	    /* events that arrived after younger ones were written */
};

/* Time from the segment's first event to the last event. */
static inline uint64_t exporter_segment_ns(const struct exporter *x)
{
	return x->last_ts - MIN(x->segment.first_ts, x->last_ts);
}

/* Passes all available events to the sink, in one or more threads. 0 or -errno. */
int exporter_give_ripe(struct exporter *x, struct error *err);
/* Finds what options->selection asks for, if it does. 0 or -errno. */
int exporter_open_selection(struct exporter *x, struct error *err);
/* -ENODATA, with a reason, if the selection turned out to be empty; or 0. */
int exporter_explain_nothing(struct exporter *x, struct error *err);
/* Passes all marks before `until` to the sink. */
int exporter_give_marks(struct exporter *x, uint64_t until, struct error *err);
/*
 * Warns of the recorder's notes, and of clocks tied too loosely. Call before the ledger is closed.
 */
void summary_take_notes(struct exporter *x);
/*
 * Fills in ret before the sink is closed, since the sink writes it. Excludes the output of closing.
 */
int summary_make(struct exporter *x, struct export_result *ret);
/* Adds what closing the sink revealed: its last lines may be the first that needed symbols. */
int summary_amend(struct exporter *x, struct export_result *ret);
