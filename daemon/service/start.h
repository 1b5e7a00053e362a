/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A client's Start, checked against limits and completed from configuration and profile. */
#pragma once

#include "service/manager.h"

#define START_EVENTS_MAX 1024
#define START_PIDS_MAX 4096
#define START_WORDS_MAX 1024
#define START_NAME_MAX 64

struct start_plan {
	struct capture_request request; /* its name is to be set from `name` */
	char *name, *what, *note;	/* owned; note: a warning, or NULL */
	/* What the request points to; owned. */
	struct capture_event_spec *specs;
	pid_t *pids;
	const char **command;
	struct cpu_set cpus;
	struct profile *profile;
};

/* start must outlive the plan. */
int start_plan_make(struct start_plan *ret, struct manager *m, const Traced__Control__Start *start,
		    struct error *err);
void start_plan_deinit(struct start_plan *p);
