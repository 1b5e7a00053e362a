/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A client's Start request, checked against limits and completed from configuration and profile. */
#pragma once

#include "daemon/service/manager.h"

#define START_EVENTS_MAX 1024
#define START_PIDS_MAX 4096
#define START_WORDS_MAX 1024
#define START_NAME_MAX 64
#define START_SQL_MAX 4000
/* Bytes of one text; of a glob of events; of a name or glob of functions. */
#define START_TEXT_MAX 4096
#define START_GLOB_MAX 256
#define START_FUNCTION_MAX 1024

struct start_plan {
	struct capture_request request; /* the caller sets its name from `name` */
	Traced__Control__Start *start;	/* a copy; owned */
	char *name, *what, *note;	/* owned; note: a warning, or NULL */
	/* Referenced by the request, beside the copy; owned. */
	char *clock;
	char **configured; /* events; NULL-terminated */
	struct capture_event_spec *specs;
	struct capture_sql *sql;
	struct capture_probe *probes;
	struct capture_trigger *triggers;
	pid_t *pids, *processes;
	const char **command;
	struct cpu_set cpus;
	struct string_list polls; /* request.polls */
	struct string_list events_allowed, events_denied;
	struct profile *profile;
	uint64_t memory_bytes;	  /* kernel memory of the main ring buffers and histograms */
	uint64_t spool_elsewhere; /* bytes that this user has in the spool outside sessions */
};

/*
 * Copies what it needs from start and the configuration: the worker reads the plan while both may
 * change.
 */
int start_plan_make(struct start_plan *ret, struct manager *m, uid_t uid,
		    const Traced__Control__Start *start, struct error *err);
/* Whether a new session may have this name. */
int start_check_name(const char *name, struct error *err);
/* The same as capture_counts_only(), for the request alone. */
bool start_counts_only(const Traced__Control__Start *start);
/* *to is overwritten without being freed; *from is empty afterwards. */
void start_plan_move(struct start_plan *to, struct start_plan *from);
void start_plan_deinit(struct start_plan *p);
