/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's function tracers: what a request asks of them, checked against what
 * the kernel has before anything is set, then planned.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/plan.h"

/*
 * Is there such a tracer, does each glob mean a function, are there such options?
 * -ENOENT names the nearest; -EBUSY: somebody else uses what there is only one of. Changes
 * nothing.
 */
int functions_check(const struct capture_env *env, const struct capture_request *request,
		    struct error *err);

/* Filters, triggers, roots, options, tasks, and at last the tracer. instance NULL: the top level.
 */
void functions_plan(struct plan *plan, const struct capture_request *request, const char *instance);

/* After plan_apply: an option that the tracer knows nothing of. dir: the buffer's. */
int functions_verify(const struct capture_request *request, int dir, struct error *err);

/* Whether programs' mappings are to be told, for the addresses in their stacks (sym-userobj). */
bool functions_want_mappings(const struct capture_request *request);
/* By a function's traceoff. */
bool functions_may_turn_off(const struct capture_request *request);

/* The top-level buffer can be taken: it is empty, and nobody traces into it. */
int toplevel_check(const struct tracefs *fs, struct error *err);
