/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs the slow parts of a session (where the kernel waits) in the worker, outside the loop. */
#pragma once

#include "daemon/service/start.h"

struct arming;
struct draining;
struct retirement;
struct session;

/* Arms in the worker, then calls session_armed(). Consumes the plan. */
int arming_start(struct arming **ret, struct session *s, struct start_plan *plan,
		 struct error *err);
/* The session is over: a capture that is still made will be removed again. Consumes r. */
void arming_forget(struct arming *a, struct retirement *r);

/* Memory for the end of a recording, so that it can't fail. NULL: out of memory. */
struct retirement *retirement_new(struct manager *m, uid_t account);
/*
 * Has the worker remove the recording's instances, once its thread has ended; then closes
 * stream_fd. capture and draining may be NULL. Consumes all.
 */
void retirement_submit(struct retirement *r, struct capture *capture, struct draining *draining,
		       int stream_fd);
void retirement_free(struct retirement *r);
/* The daemon ends: waits for no thread's end before submitting. */
void retirement_submit_all(struct manager *m);
