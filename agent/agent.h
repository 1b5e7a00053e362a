/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent's life: look for orders, judge them, note that they are taken, wait for their start,
 * record, upload. Orders are recorded one after another; no URL is asked meanwhile. Requests are
 * made one after another, and everything else goes on while one lasts. An order is taken at most
 * once: an agent that is killed while it records reports it as interrupted; one that is killed
 * before goes on with it.
 */
#pragma once

#include "agent/hook.h"
#include "agent/jobs.h"
#include "agent/mqtt.h"
#include "agent/poll.h"
#include "agent/recorder.h"
#include "agent/signature.h"
#include "agent/state.h"
#include "agent/status.h"
#include "agent/upload.h"
#include "agent/verdict.h"
#include "base/log.h"

struct agent {
	struct policy policy;
	struct public_keys keys;
	struct state state;
	struct spool spool;
	struct recorder recorder;
	struct http *http;
	struct http_meanwhile meanwhile; /* while it waits for an answer */
	int signal_fd;
	bool is_ending;			    /* a signal asks for it */
	bool has_unsaved;		    /* outcomes; the next status saves them */
	struct mqtt *mqtt;		    /* NULL: the policy has no broker */
	struct poll polls[POLICY_URLS_MAX]; /* as many as the policy has URLs */
	struct upload upload;
	struct jobs jobs;
	struct hook may_record, may_upload;
	struct status status;
	/* Since the agent began: */
	uint64_t verdicts[VERDICT_COUNT];
	uint64_t recordings, recording_failures, interrupted, withdrawn;
	uint64_t metrics_ns; /* when they were written */
};

/* Reads the policy, the keys and the state. owner: whose files are trusted. */
int agent_init(struct agent *agent, const char *policy_file, uid_t owner, struct error *err);
void agent_deinit(struct agent *agent);
/* Checks the signature and parses the text. VERDICT_TAKE: it is an order. */
enum verdict agent_read_order(const struct agent *agent, const char *data, size_t len,
			      struct order *ret, struct error *err);
/* A taken order waits for its start, on CLOCK_BOOTTIME. Consumes it. */
void agent_add_job(struct agent *agent, struct order *order, uint64_t start_ns,
		   const struct place *place);
/* The job i needs nothing more but, perhaps, the upload of its results. */
void agent_close_job(struct agent *agent, size_t i, enum outcome outcome, const char *reason);
/* The first job has failed. */
void agent_fail_job(struct agent *agent, const struct error *err);
/* The results of some orders have left the spool. OUTCOME_FAILED: they gave way to newer ones. */
void agent_note_results(struct agent *agent, enum outcome outcome);
/* Judges the bytes of an order, and takes it if it may. place: that shows it, or NULL. */
enum verdict agent_take(struct agent *agent, const char *data, size_t len, struct place *place);
/* The place shows something larger than an order can be. */
void agent_refuse_size(struct agent *agent, struct place *place);
/* The place shows its orders no longer: they are not followed, and one is ended. */
void agent_withdraw(struct agent *agent, struct place *place);
/* Keeps the outcomes of past orders for the agent's next life. */
void agent_save_outcomes(struct agent *agent);
/* serial: 0: none. */
void agent_log_error(int level, const char *what, uint64_t serial, const struct error *err);
/* Runs until SIGTERM or SIGINT. */
int agent_run(struct agent *agent, struct error *err);
