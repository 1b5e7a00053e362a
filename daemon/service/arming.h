/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What makes the kernel wait, of a session's life: done by the worker, out of the loop. */
#pragma once

#include "daemon/service/start.h"

struct arming;
struct session;

/* Calls session_armed() when it is done. Takes the plan. */
int arming_start(struct arming **ret, struct session *s, struct start_plan *plan,
		 struct error *err);
/* Its session is gone: what comes of it is taken down again. */
void arming_forget(struct arming *a);
/* capture_free(), later; capture may be NULL. */
void capture_retire(struct manager *m, struct capture *capture);
