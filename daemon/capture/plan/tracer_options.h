/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Options of the tracers function and function_graph: options/func..., sleep-time, graph-time.
 * Before Linux 6.19 the kernel has one value of each for all instances, whichever instance's file
 * is written. Then a recording sets one only while nobody else has that tracer on.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/plan.h"

/* Also if the kernel's version is unknown. */
bool tracer_options_are_global(const struct capture_env *env);
/* -EBUSY: the tracer of an option that the request sets is on elsewhere. */
int tracer_options_check(const struct capture_env *env, const struct capture_request *request,
			 struct error *err);
/*
 * Adds checks to the steps from `first` on, which set the options and turn the tracer on: they are
 * refused if the tracer is on elsewhere by then, or if somebody else has changed what it records.
 * No other recording begins between them.
 */
void tracer_options_plan_unused(struct plan *plan, size_t first);

/* -EBUSY, with this hint: a tracer of these is on in an instance or at the top level. */
int tracer_check_unused(const struct tracefs *fs, bool (*is)(const char *tracer), const char *hint,
			struct error *err);
