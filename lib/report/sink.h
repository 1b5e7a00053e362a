/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internal to sink.c, live.c and watch.c: the reports of one run, and who gets which events. */
#pragma once

#include "report/kind.h"

/* Requests for events of an id form a chain through `next`. */
struct dispatch_entry {
	report_handler handler;
	struct report *report;
	uint32_t next; /* index + 1 in entries; 0: none */
};

struct dispatch {
	const struct event_table *events;
	uint32_t *first; /* owned; by id: index + 1 in entries; 0: none */
	uint32_t all;	 /* the same for those who asked for all events */
	struct dispatch_entry *entries;
	size_t count, cap;
	bool failed; /* out of memory */
};

struct sink_report {
	struct sink sink;
	struct output *out;
	const struct merge_gaps *gaps;
	uint64_t losses; /* that were passed on */
	uint64_t before; /* losses that the merge met before the part */
	struct report_env env;
	struct dispatch dispatch;
	struct report **reports; /* owned, as they are */
	size_t count, cap;
	size_t tables; /* of reports that have events */
};

/* Initializes what all sinks of reports have. Call report_sink_deinit() also if it fails. */
int report_sink_init(struct sink_report *s, const struct sink_env *env, struct error *err);
void report_sink_deinit(struct sink_report *s);
/* The same, and frees it; sink is its first member. */
void report_sink_free(struct sink *sink);

/* Clocks whose times are nanoseconds. */
extern const char *const report_clocks[];

/* NULL: there is no such report. */
const struct report_kind *report_kind_find(const char *name);
/* -ENODATA: the recording has no events for it. */
int report_sink_add(struct sink_report *s, const struct report_kind *kind, struct error *err);

/* Functions of struct sink_ops; sink is the first member of a struct sink_report. */
int report_sink_event(struct sink *sink, const struct trace_event *ev, struct error *err);
int report_sink_loss(struct sink *sink, uint32_t cpu, uint64_t before_ts, uint64_t after_ts,
		     uint64_t count, struct error *err);
int report_sink_mark(struct sink *sink, const struct mark *mark, struct error *err);
/* r < 0: sets an error. */
int report_sink_failed(int r, struct error *err);
