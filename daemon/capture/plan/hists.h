/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The histograms of a recording. Each is a trigger on an event of the recording's own instance:
 * the kernel counts, and no event crosses. They are made paused. They count from the moment at
 * which tracing is turned on until it is turned off.
 *
 * A trigger counts events whether or not the event is enabled, and whatever tasks and CPUs the
 * instance is limited to: trace_trigger_soft_disabled() lets it see all events. So a request that
 * has both is refused.
 */
#pragma once

#include "daemon/capture/plan/hist_spec.h"
#include "daemon/capture/plan/plan.h"
#include "daemon/capture/plan/synthetic.h"
#include "daemon/capture/tracefs/events.h"

#define HISTS_MAX 16
/* The most entries for users who may not see the kernel's addresses. */
#define HISTS_USER_SIZE_MAX (1U << 14)

/* The texts are owned. */
struct hist {
	char *event;		 /* "sched:sched_switch" */
	char *paused, *counting; /* the trigger with either command */
};

struct hists {
	struct hist items[HISTS_MAX];
	size_t count;
};
void hists_deinit(struct hists *h);

/*
 * True if it has histograms, and nothing that brings events, samples or symbols: the stream has no
 * addresses then, if the histograms have none. It takes no marks, which have some.
 */
bool capture_counts_only(const struct capture_request *request);
/* Whether the request's other parts go with its histograms. */
int hists_check(const struct capture_request *request, struct error *err);
/* Upper bound of the kernel's memory for them, in bytes. 0 for what is no histogram. */
uint64_t hists_memory(const struct capture_words *specs);
/*
 * Finds the event of each histogram among the recording's own and the kernel's names, and checks
 * its fields with the event's format. -ENOENT, -EINVAL: there is no such event or field. -EPERM: it
 * is closed to this user. -EOPNOTSUPP: this kernel has no histograms.
 */
int hists_find(struct hists *ret, const struct tracefs *fs, const struct capture_request *request,
	       const struct synthetic_list *synthetics, const char *const *names, size_t name_count,
	       struct error *err);
void hists_plan(const struct hists *h, struct plan *plan, const char *instance);
/* Has them count, or not. dir: the instance. 0 or the first -errno. */
int hists_switch(const struct hists *h, int dir, bool on);
/* Explains why the kernel refused a step of hists_plan(). Returns code. */
int hists_explain(const struct plan_step *s, const char *error_log, int code, struct error *err);

/*
 * In hist_check.c. Checks the fields of one histogram of an event ("system:event") with the text of
 * its format file, and its filter. hidden: for a user who may not see the kernel's addresses.
 */
int hist_check(const struct hist_spec *s, const char *event, const char *format, bool hidden,
	       struct error *err);
