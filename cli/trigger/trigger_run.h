/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process that follows triggers. */
#pragma once

#include "trigger.h"

struct trigger_run {
	const struct triggers *triggers;
	struct link *link;
	const char *session, *watch;  /* the flight recorder, and the session with the events */
	int pipe;		      /* where firings come from */
	uint64_t attach_id, watch_id; /* requests whose reply tells the session's end */
};

/* Until one of the sessions ends. Messages go to stderr. Returns an exit status. */
int trigger_run(const struct trigger_run *run);
