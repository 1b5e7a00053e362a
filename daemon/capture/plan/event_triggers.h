/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Triggers of events: commands that the kernel runs when an event happens. They act on the
 * recording's own instance, on the events of all its tasks, whether or not the event is recorded.
 *
 * An action is "COMMAND[:TARGET][:COUNT][ if FILTER]". COMMAND is traceon, traceoff, stacktrace,
 * or enable_event and disable_event, whose target is SYSTEM:EVENT. The kernel's snapshot is
 * refused: it would take the events away from the ring's readers.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/plan.h"
#include "daemon/capture/plan/probes.h"

/*
 * The kernel waits for several grace periods to remove one, up to half a second, and other users'
 * recordings wait for the worker meanwhile.
 */
#define TRIGGERS_MAX 32

/*
 * The kernel counts a trigger's actions also while tracing is off. So triggers with a count are set
 * after tracing is turned on, and the others before, so that no event is without them.
 */
struct trigger_plans {
	struct plan before, after;
};
void trigger_plans_deinit(struct trigger_plans *p);

/* Names of events that triggers may enable. Their formats must be in the stream. */
struct trigger_targets {
	const char **names; /* owned; the strings are the kernel's list's */
	size_t count;
};
void trigger_targets_deinit(struct trigger_targets *t);

/* Checks the actions' syntax, before anything is made in the kernel. -EINVAL shows the place. */
int event_triggers_check(const struct capture_env *env, const struct capture_request *request,
			 struct error *err);
/* True if one of the request's triggers has this command. */
bool event_triggers_have(const struct capture_request *request, const char *command);
/* Appends "EVENT: ACTION; ..." of the triggers that turn tracing off. */
void event_triggers_put_off(const struct capture_request *request, struct buf *out);
/*
 * The event of a trigger that turns tracing off is recorded, too, to show the time: with the
 * trigger's filter, or all. Fills specs, for request->trigger_count, and returns their number.
 */
size_t event_triggers_specs(const struct capture_request *request,
			    struct capture_event_spec *specs);

/*
 * Finds the events and adds a step for each trigger. Errors as event_matches_find(). With
 * request->bounds.hide_addresses, filters are checked as those of events.
 */
int event_triggers_plan(struct trigger_plans *plans, const struct tracefs *fs,
			const struct capture_request *request, const struct probe_list *probes,
			const char *instance, const char *const *names, size_t name_count,
			struct trigger_targets *ret, struct error *err);
/* Explains a refusal by a kernel that lacks the command. 0: it has it. */
int event_trigger_explain(const struct plan_step *s, const struct tracefs *fs, struct error *err);
