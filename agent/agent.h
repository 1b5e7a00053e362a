/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent's life: poll for an order, judge it, note that it is taken, wait for its start, record,
 * upload. One order at a time: no poll while one waits or runs. An order is taken at most once: an
 * agent that is killed in between reports it as interrupted.
 */
#pragma once

#include "agent/poll.h"
#include "agent/recorder.h"
#include "agent/signature.h"
#include "agent/state.h"
#include "agent/upload.h"
#include "agent/verdict.h"

struct agent {
	struct policy policy;
	struct public_keys keys;
	struct state state;
	struct spool spool;
	struct recorder recorder;
	struct http *http;
	struct poll poll;
	struct upload upload;
	bool has_order; /* taken: waits for start_ns, or is recorded */
	struct order order;
	uint64_t start_ns; /* CLOCK_BOOTTIME */
	/* Since the agent began: */
	uint64_t verdicts[VERDICT_COUNT];
	uint64_t recordings, recording_failures, interrupted;
	uint64_t metrics_ns; /* when they were written */
};

/* Reads the policy, the keys and the state. owner: whose files are trusted. */
int agent_init(struct agent *agent, const char *policy_file, uid_t owner, struct error *err);
void agent_deinit(struct agent *agent);
/* Judges the bytes of an order, and takes it if it may. */
enum verdict agent_take(struct agent *agent, const char *data, size_t len);
/* Runs until SIGTERM or SIGINT. */
int agent_run(struct agent *agent, struct error *err);
