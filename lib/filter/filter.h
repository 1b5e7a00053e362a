/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Filters of recorded events by their fields:
 *
 * 	EVENTS: EXPRESSION		sched_switch: prev_prio < 100 && next_comm ~ "kw*"
 *
 * EVENTS are names of events or systems, separated by commas (event_names.h); alone they take each
 * of their events. An EXPRESSION is that of `man tracectl`, --filter. CPU and COMM are the event's
 * CPU and its task's name. An event that no filter names is left out.
 *
 * The syntax is that of `trace-cmd report -F`, and more: docs/report.md. libtraceevent, which
 * evaluates it there, is not used (docs/architecture.md, Decisions), but judges in the tests.
 */
#pragma once

#include <stddef.h>

#include "export/selection.h"

struct filter;

/*
 * texts are borrowed; an event passes if one of them lets it pass. -EINVAL: bad syntax. What is
 * wrong with names shows once formats are known, in event_filter.begin.
 */
int filter_new(struct filter **ret, const char *const *texts, size_t count, struct error *err);
struct filter *filter_free(struct filter *f);
DEFINE_CLEANUP_FUNC(struct filter *, filter_free);

/* Valid as long as the filter. */
const struct event_filter *filter_event_filter(const struct filter *f);
