/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs the slow parts of a session (where the kernel waits) in the worker, outside the loop. */
#pragma once

#include "daemon/service/start.h"

struct arming;
struct session;

/* Arms in the worker, then calls session_armed(). Consumes the plan. */
int arming_start(struct arming **ret, struct session *s, struct start_plan *plan,
		 struct error *err);
/* The session is over: a capture that is still made will be removed again. */
void arming_forget(struct arming *a);
/* Calls capture_free() in the worker. capture may be NULL. */
void capture_retire(struct manager *m, struct capture *capture);
