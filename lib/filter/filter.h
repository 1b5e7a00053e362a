/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Filters of recorded events by their fields, in the syntax of `trace-cmd report -F`, evaluated by
 * libtraceevent: "sched_switch: prev_prio < 100 && next_comm ~ \"kw*\"". Before the colon are
 * events or systems, separated by commas; regular expressions. An event that no filter names is
 * left out, as with trace-cmd. libtraceevent parses formats of unknown origin: where the exporter
 * decodes in a sandbox, so does it.
 */
#pragma once

#include <stddef.h>

#include "export/selection.h"

struct filter;

/*
 * texts are borrowed; an event passes if one of them lets it pass. -EOPNOTSUPP: built without
 * libtraceevent. What is wrong with a text shows once formats are known, in event_filter.begin.
 */
int filter_new(struct filter **ret, const char *const *texts, size_t count, struct error *err);
struct filter *filter_free(struct filter *f);
DEFINE_CLEANUP_FUNC(struct filter *, filter_free);

/* Valid as long as the filter. */
const struct event_filter *filter_event_filter(const struct filter *f);
