/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds the Start message from the options. */
#pragma once

#include "cli.h"
#include "proto/control.pb-c.h"
#include "sql/sql.h"

/* The message borrows from the options. */
struct start_request {
	Traced__Control__Start message;
	Traced__Control__EventSpec *specs; /* owned, like the rest */
	Traced__Control__EventSpec **spec_list;
	Traced__Control__EventTrigger *triggers, **trigger_list;
	int32_t *pids;
	Traced__Control__Probe *probes, **probe_list; /* the definitions are owned, too */
	struct sql_request sql;
	char **hist; /* of hist --sql */
};

/*
 * child: pid of the held command, or 0. -ESRCH: no such process. Opens programs in which uprobes
 * name a function; errors of function_place_find().
 */
int start_request_init(struct start_request *ret, const struct options *o, pid_t child,
		       struct error *err);
void start_request_deinit(struct start_request *s);
#define _cleanup_start_request_ _cleanup_(start_request_deinit)
