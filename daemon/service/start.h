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
	Traced__Control__Start *start;	/* a copy; owned */
	char *name, *what, *note;	/* owned; note: a warning, or NULL */
	/* What the request points to, beside the copy; owned. */
	char *clock;
	char **configured; /* events; NULL-terminated */
	struct capture_event_spec *specs;
	pid_t *pids;
	const char **command;
	struct cpu_set cpus;
	struct profile *profile;
};

/* Neither start nor the configuration need outlive the plan: it is read while they may change. */
int start_plan_make(struct start_plan *ret, struct manager *m, const Traced__Control__Start *start,
		    struct error *err);
/* *to is taken as empty; *from is, afterwards. */
void start_plan_move(struct start_plan *to, struct start_plan *from);
void start_plan_deinit(struct start_plan *p);
