/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Request -> plan. */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/plan.h"
#include "daemon/capture/tracefs/events.h"

#define DEFAULT_CLOCK "boot"
#define DEFAULT_BUFFER_BYTES (UINT64_C(4) << 20)
#define TASKS_BUFFER_KB 64
/* In ring mode the tasks' ring, too, has to last from one snapshot to the next. */
#define TASKS_RING_BUFFER_KB 512
/* Of the ring, in percent: how full before its reader is woken. The rest is for a busy machine. */
#define WAKEUP_PERCENT "25"

#define INSTANCE_NAME_MAX 200

/* -EOPNOTSUPP: it is older than those that traced is for (4.19). proc: "/proc", or a fixture's. */
int kernel_check(const char *proc, struct error *err);

/* held: bytes of rings that are there already, for this recording. */
int request_check(const struct capture_env *env, const struct capture_request *request,
		  uint64_t held, struct error *err);
/*
 * The whole plan: the main instance (NULL: the top level) and the one for tasks (tasks NULL: none).
 * Steps that enable an event bear its match as tag. matches must outlive the plan.
 */
int request_plan(struct plan *plan, const struct capture_request *request,
		 const struct event_matches *matches, const char *instance, const char *tasks,
		 struct error *err);
/* The buffers alone, off and empty: what a recording of such a clock and size begins with. */
int request_plan_buffers(struct plan *plan, const struct capture_env *env,
			 const struct capture_request *request, const char *instance,
			 const char *tasks, struct error *err);
/*
 * After plan_apply: -errno and err if a spec has no event left that could be
 * enabled; else 0, and in *refused the number of events left out.
 */
int request_verify(const struct plan *plan, const struct tracefs *fs,
		   const struct capture_request *request, unsigned *ret_refused, struct error *err);
