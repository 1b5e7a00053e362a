/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Answers from a recording, as tables: how long tasks waited, what interrupts cost, and so on. A
 * report gets the merged events as a sink does: pass report_sink_ops to export_run(), with
 * export_options.report. The tables go to the output.
 *
 * An interval in which events were lost is never guessed: it is counted in a column `cut`. One that
 * began before the recording or did not end in it is counted in `open`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum report_form {
	REPORT_TEXT,
	REPORT_JSON,
	REPORT_CSV,
	REPORT_FRAME, /* for another process: frame.h */
};

#define REPORTS_MAX 16

struct net_traffic;

/*
 * Recordings of several machines, one export after the other. Reports that take them keep what they
 * need of each, and make their tables after the last one.
 */
struct report_hosts {
	const char *label;	     /* of the machine whose export comes */
	bool is_last;		     /* it is the last one */
	struct net_traffic *traffic; /* of report net; owned by whoever exports */
	/* The sums of the exports until now. */
	uint64_t first_ns, last_ns, events, lost, gaps;
	bool incomplete, marks_lost;
};

struct report_options {
	const char *const
		*names; /* borrowed; none: the usual reports, as far as there are events */
	size_t count;	/* at most REPORTS_MAX */
	enum report_form form;
	const char *by;		    /* what a row stands for; NULL: the report's usual choice */
	const char *sort;	    /* a column; NULL: the report's usual one */
	const char *match;	    /* only rows with this in a text; NULL, "": all */
	uint64_t top;		    /* rows of a table; 0: all */
	uint64_t min_ns;	    /* least value of the column that sorts, if that is a time */
	const char *task;	    /* a tid, or a name; NULL: none */
	bool is_terminal;	    /* for people: bars in histograms */
	struct report_hosts *hosts; /* NULL: it is one machine's recording */
	/* If reports of several machines follow one another: its label; borrowed. Else NULL. */
	const char *host;
	bool is_further; /* it is not the first of them */
};

extern const struct sink_ops report_sink_ops;
/*
 * The same for a recording that is followed: tables of each window, as frames (frame.h). A window
 * ends with every REPORT_WINDOW_FLUSHES-th FLUSH, about once a second. Only reports that
 * report_is_live() names; those without events are left out.
 */
extern const struct sink_ops report_live_ops;
#define REPORT_WINDOW_FLUSHES 2
bool report_is_live(const char *name);

/* Facts about a report that need no recording. */
struct report_about {
	const char *name, *summary;
	bool is_usual;	       /* made if no report is named */
	bool needs_task;       /* report_options.task */
	bool takes_hosts;      /* report_options.hosts */
	bool takes_any;	       /* it is made of any events; `events` are the usual ones */
	const char *events;    /* to record for it, for hints: "sched", or options: "-p NAME" */
	const char *page_sort; /* column that sorts it if no report is named; NULL: as usual */
	const char *const *by; /* choices for `by`, the usual first; NULL-terminated; NULL: none */
};
/* All reports, in the order of help. Valid forever. */
const struct report_about *report_all(size_t *ret_count);

/* -EINVAL: unknown report or choice; the hint lists what there is. */
int report_options_check(const struct report_options *o, struct error *err);
