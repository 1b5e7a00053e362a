/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's tracers of latencies: timerlat, osnoise and hwlat. Their settings are global, so a
 * recording keeps the old ones in its journal and restores them.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/plan.h"

bool latency_is(const char *tracer);
/* True also of those that keep their worst case only, which cannot be recorded. */
bool latency_is_known(const char *tracer);
/* 0, or -EOPNOTSUPP with a hint at what shows the same. */
int latency_check_name(const char *tracer, struct error *err);

/*
 * Checks settings ("period=1ms") and the threshold. -EBUSY: another tracer of latencies runs, which
 * new settings would disturb. Changes nothing.
 */
int latency_check(const struct tracefs *fs, const struct capture_functions *f, struct error *err);
/* Plans the settings, once checked: those before the tracer is turned on, and those after. */
void latency_plan_before(struct plan *plan, const struct capture_functions *f);
void latency_plan_after(struct plan *plan, const struct capture_functions *f);
/*
 * Has the steps from `first` on, which set the settings and turn the tracer on, refused if another
 * such tracer runs by then. No other recording begins between them.
 */
void latency_plan_unused(struct plan *plan, const struct capture_functions *f, size_t first);
