/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A client's Start, checked against limits and completed from configuration and profile. */
#pragma once

#include "daemon/service/manager.h"

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
	struct string_list events_allowed, events_denied;
	struct profile *profile;
	uint64_t memory_bytes;	  /* of the kernel's, for its main ring buffers */
	uint64_t spool_elsewhere; /* bytes that its user has in the spool, of no session */
};

/* Neither start nor the configuration need outlive the plan: it is read while they may change. */
int start_plan_make(struct start_plan *ret, struct manager *m, uid_t uid,
		    const Traced__Control__Start *start, struct error *err);
/* *to is taken as empty; *from is, afterwards. */
void start_plan_move(struct start_plan *to, struct start_plan *from);
void start_plan_deinit(struct start_plan *p);
