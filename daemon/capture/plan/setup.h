/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of a recording that its request decides, and what was made in the kernel for it. Nothing
 * here changes between capture_new and capture_free.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/event_triggers.h"
#include "daemon/capture/plan/hists.h"
#include "daemon/capture/plan/plan.h"
#include "daemon/capture/plan/probes.h"
#include "daemon/capture/plan/request.h"
#include "daemon/capture/plan/synthetic.h"
#include "daemon/capture/report.h"

struct capture_setup {
	struct capture_env env;
	uint8_t uuid[16];
	struct cpu_set cpus; /* bits NULL: all */
	uint64_t stream_limit;
	bool ring_mode, streamed;
	bool wants_mappings; /* for user stacks: read at start and end */
	bool copies_marks;   /* of the top level's trace_marker */
	bool may_go_off;     /* a trigger or a threshold may turn tracing off */
	bool stops;	     /* a threshold or an event's trigger does, which ends the recording */
	bool by_trigger;     /* only a trigger does */
	char *off_by;	     /* these; NULL: none */
	bool may_go_on;	     /* a trigger may turn tracing on */

	struct synthetic_list synthetics;
	struct hists hists;
	struct plan plan;
	struct trigger_plans triggers; /* undone before the plan */
	struct journal journal;
	char instance[INSTANCE_NAME_MAX], tasks[INSTANCE_NAME_MAX];
	const char *main;		/* the instance; NULL: the top level */
	bool counts_only;		/* histograms, and no events */
	bool has_tasks;			/* a ring of births and renames */
	struct buf header, header_page; /* contents of the chunks at each stream's head */
};

/*
 * The request's events, needed only until the recording is set up. The matches point into the
 * request and into the kernel's event list.
 */
struct setup_events {
	struct tracefs *listed;		  /* owns the list, which other recordings do not change */
	struct capture_request request;	  /* with the probes' events added */
	struct capture_event_spec *specs; /* owned: request.events */
	struct probe_list probes;
	struct event_matches matches;
	struct trigger_targets targets; /* events that triggers enable */
};
void setup_events_deinit(struct setup_events *e);

#define SETUP_INIT ((struct capture_setup){ .journal = JOURNAL_INIT })
/* Takes what the request asks for. Changes nothing in the kernel. */
int setup_init(struct capture_setup *s, const struct capture_env *env,
	       const struct capture_request *request, struct error *err);
/* Names the instances, unless they come from a spare. owner: a uid. 0 or -ENAMETOOLONG. */
int setup_name_instances(struct capture_setup *s, const char *name, uid_t owner);
/*
 * The steps of setting up, in order. Makes the journal, and plans the probes and events by SQL.
 * They come first, so that their events exist when the globs are matched.
 */
int setup_plan_probes(struct capture_setup *s, const struct capture_request *request,
		      struct setup_events *ret, struct error *err);
/* A slice of what is planned, up to until_ns (CLOCK_MONOTONIC). 1: there is more. */
int setup_apply_slice(struct capture_setup *s, uint64_t until_ns, struct error *err);
int setup_find_events(struct capture_setup *s, const struct capture_request *request,
		      struct setup_events *ret, struct error *err);
/* Plans the instances and all that the request sets in them; setup_apply_slice() follows again. */
int setup_plan(struct capture_setup *s, const struct setup_events *e, struct capture_report *report,
	       struct error *err);
/* Tells what the kernel refused. */
int setup_verify(struct capture_setup *s, const struct setup_events *e,
		 struct capture_report *report, struct error *err);
/* Sets triggers of events, right before tracing is turned on, or right after it. */
int setup_arm(struct capture_setup *s, bool after, struct error *err);
/* Slices of setup_deinit(), up to until_ns. True: there is more. */
bool setup_undo_triggers(struct capture_setup *s, uint64_t until_ns);
bool setup_undo_plan(struct capture_setup *s, uint64_t until_ns);
/* Undoes everything in the kernel. */
void setup_deinit(struct capture_setup *s);
