/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sink that passes events to reports, for sinks that do something else with one report. */
#pragma once

#include "report/kind.h"

/* Trace clocks that count nanoseconds; NULL-terminated. */
extern const char *const report_clocks[];

/* only NULL: the reports that the options name. */
int report_sink_begin(struct sink **ret, const struct sink_env *env, const struct report_kind *only,
		      struct error *err);
struct report *report_sink_first(struct sink *sink);
int report_sink_event(struct sink *sink, const struct trace_event *ev, struct error *err);
int report_sink_loss(struct sink *sink, uint32_t cpu, uint64_t before_ts, uint64_t after_ts,
		     uint64_t count, struct error *err);
int report_sink_mark(struct sink *sink, const struct mark *mark, struct error *err);
void report_sink_free(struct sink *sink);
