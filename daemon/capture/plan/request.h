/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Turns a request into a plan. */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/plan.h"
#include "daemon/capture/tracefs/events.h"

#define DEFAULT_CLOCK "boot"
#define DEFAULT_BUFFER_BYTES (UINT64_C(4) << 20)
#define INSTANCE_NAME_MAX 200

/* -EOPNOTSUPP: older than 4.19, the oldest supported kernel. proc: "/proc", or a fixture's. */
int kernel_check(const char *proc, struct error *err);

/* held: bytes of ring buffers that already exist for this recording. */
int request_check(const struct capture_env *env, const struct capture_request *request,
		  uint64_t held, struct error *err);
/*
 * Checks the memory again while the instance's ring buffers are not allocated in full: others may
 * be allocating theirs between two slices. -ENOMEM.
 */
int request_check_room(const struct capture_env *env, const struct capture_request *request,
		       const struct plan *plan, const char *instance, struct error *err);
/*
 * Plans everything: the main instance (NULL: the top level) and the one for tasks (tasks NULL:
 * none). Each step that enables an event has its match as tag, for request_verify.
 */
int request_plan(struct plan *plan, const struct capture_env *env,
		 const struct capture_request *request, const struct event_matches *matches,
		 const char *instance, const char *tasks, struct error *err);
/* Plans only the buffers, off and empty, with the request's clock and sizes. */
int request_plan_buffers(struct plan *plan, const struct capture_env *env,
			 const struct capture_request *request, const char *instance,
			 const char *tasks, struct error *err);
/*
 * After plan_apply: fails with err if a spec has no event left that could be enabled; otherwise
 * returns 0 and stores the number of refused events.
 */
int request_verify(const struct plan *plan, const struct tracefs *fs,
		   const struct capture_request *request, unsigned *ret_refused, struct error *err);
