/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of a recording that goes into the output: of its time, its CPUs, tasks and events. The
 * exporter asks for each event, loss and mark whether it is in that part; sinks that read samples
 * themselves ask, too.
 *
 * Times are half-open: parts from a to b and from b to c hold together what a to c holds. Of
 * scheduling, the events about a task belong to it as its own do, whoever caused them: as with the
 * kernel's set_event_pid.
 *
 * A viewer draws what ran from one sched_switch to the next. So that it knows who ran when the part
 * began, formats with sink_ops.shows_state get the last sched_switch of each CPU before it, as it
 * was, and the begins of slices that were open.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/parse.h"
#include "export/moment.h"
#include "trace/merge.h"
#include "trace/trace_info.h"

struct mark;

/* A filter of events by their fields; the exporter does not link the library that evaluates it. */
struct event_filter {
	/* Before the first event. Returns 0 or -errno. */
	int (*begin)(void *userdata, const struct trace_info *info, struct error *err);
	bool (*takes)(void *userdata, const struct trace_event *ev);
	const char *text; /* for people */
	bool wants_tasks; /* it asks for names of tasks */
	void *userdata;
};

/* Wishes; zeros: all. All is borrowed. */
struct export_selection {
	struct moment from, to; /* from <= time < to */
	const struct cpu_set *cpus;
	const int32_t *pids; /* processes with all their threads, or threads */
	size_t pid_count;
	const int32_t *threads;
	size_t thread_count;
	const char *comm;	   /* a glob for the name of the thread or its process */
	const char *const *events; /* globs as with `record -e` */
	size_t event_count;
	const struct event_filter *filter;
	bool is_whole; /* it is all that was asked for: what it lacks is not reported */
};
bool selection_is_wanted(const struct export_selection *wanted);
/* Whether it asks for tasks' names or processes. */
bool selection_wants_tasks(const struct export_selection *wanted);

struct selection;

/*
 * Times were found: from <= time < to, by the trace clock. wanted and info are borrowed. Returns 0
 * or -errno.
 */
int selection_new(struct selection **ret, const struct export_selection *wanted,
		  const struct trace_info *info, uint64_t from, uint64_t to, struct error *err);
/* From now on only times count for selection_has_event() and selection_has_loss(). */
void selection_only_times(struct selection *s);
struct selection *selection_free(struct selection *s);
DEFINE_CLEANUP_FUNC(struct selection *, selection_free);

/* Each is true without a selection (s NULL). */
bool selection_has_all_kinds(const struct selection *s);
/* False: no event that the recording describes has one of the wanted names. */
bool selection_knows_kind(const struct selection *s);
bool selection_has_time(const struct selection *s, uint64_t ts);
bool selection_has_cpu(const struct selection *s, uint32_t cpu);
bool selection_has_task(struct selection *s, int32_t tid, uint64_t ts);

/* The time of its begin and its end; UINT64_MAX: it has no end. */
uint64_t selection_from(const struct selection *s);
uint64_t selection_to(const struct selection *s);

/* Whether it has the event, whose head was read. */
bool selection_has_event(struct selection *s, const struct trace_event *ev);
/* The same but for its time. */
bool selection_has_kind(struct selection *s, const struct trace_event *ev);
/*
 * Whether some of the missing events may be in it; before_ts and after_ts of item are then times in
 * it or, as in a whole recording, 0 and UINT64_MAX.
 */
bool selection_has_loss(const struct selection *s, struct merge_item *item);
/* overlap: also if only its end is in it. */
bool selection_has_mark(struct selection *s, const struct mark *mark, bool overlap);

/* Keeps a sched_switch before its begin, and forgets it after a loss. 0 or -ENOMEM. */
int selection_keep_state(struct selection *s, const struct trace_event *ev);
void selection_lose_state(struct selection *s, uint32_t cpu);
/* The kept events in order of time, valid as long as the selection; NULL: no more. */
struct trace_event *selection_take_state(struct selection *s);

/* Appends the wishes, for people: "from 12.5, CPUs 0-3". */
void selection_describe(const struct selection *s, struct buf *out);
