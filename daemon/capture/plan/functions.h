/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's tracers: checks a request against the kernel's abilities before anything
 * is set, then plans the steps.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/event_triggers.h"
#include "daemon/capture/plan/plan.h"

/*
 * Checks that the tracer exists, that each glob matches a function, and that the options exist.
 * -ENOENT names the nearest; -EBUSY: somebody else uses a global setting. Changes nothing.
 */
int functions_check(const struct capture_env *env, const struct capture_request *request,
		    struct error *err);

/*
 * Plans filters, triggers, roots, options, tasks, and last the tracer. instance NULL: the top
 * level.
 */
void functions_plan(struct plan *plan, const struct capture_env *env,
		    const struct capture_request *request, const char *instance);
/*
 * Plans the functions' command "traceon", which functions_plan() leaves out: it has to be undone
 * when the recording ends, or the next call would turn tracing on again.
 */
void functions_plan_on(struct plan *plan, const struct capture_request *request,
		       const char *instance);

/* Adds the events that functions' commands enable. 0 or -ENOMEM. */
int functions_find_targets(const struct capture_request *request, const char *const *names,
			   size_t name_count, struct trigger_targets *ret, struct error *err);

/* After plan_apply: checks that the tracer knows each option. dir: the buffer's. */
int functions_verify(const struct capture_request *request, int dir, struct error *err);

/* True if the request turns the option on or off. */
bool functions_set_option(const struct capture_request *request, const char *name);
/* True if addresses in user stacks need programs' mappings (option sym-userobj). */
bool functions_want_mappings(const struct capture_request *request);
/* True if one of the functions has this command: "traceoff". */
bool functions_have_command(const struct capture_request *request, const char *command);

/* Checks that the top-level buffer is free: empty, and nobody traces into it. */
int toplevel_check(const struct tracefs *fs, struct error *err);
