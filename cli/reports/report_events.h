/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `record --report` has to record. */
#pragma once

#include "cli.h"
#include "report/report.h"

#define REPORT_EVENTS_MAX 16

struct report_events {
	struct event_option events[REPORT_EVENTS_MAX];
	size_t count;
	const char *tracer; /* NULL: none */
	char *words;	    /* owned; the events point into it */
};

/* NULL if the events of o suffice for the report, which is one of report_all(). */
const struct report_about *report_events_missing(const struct options *o, const char *report);
/*
 * If o selects nothing to trace, has *changed record what the reports need. Otherwise warns of
 * those that will have no events. 0, or -ENOMEM; call report_events_deinit() in any case.
 */
int report_events_choose(struct report_events *ret, const struct options *o,
			 const struct report_options *reports, struct options *changed);
void report_events_deinit(struct report_events *e);
#define _cleanup_report_events_ _cleanup_(report_events_deinit)
