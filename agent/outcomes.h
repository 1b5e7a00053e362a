/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The last outcomes on the disk, so that the status has them after the agent's end, too. */
#pragma once

#include "agent/spool.h"
#include "agent/status.h"

/* Saves those that outlive the agent. state_fd: the folder. */
int outcomes_save(const struct status *status, int state_fd, struct error *err);
/*
 * Notes what was saved. -EBADMSG: a line makes no sense; those before it are noted. No safety
 * depends on them.
 */
int outcomes_load(struct status *status, int state_fd, struct error *err);

/*
 * Gives an outcome to orders whose results have left the spool. Whether a result that is being sent
 * arrives shows its end: sending is its order, or 0. Returns whether any order has changed.
 */
bool outcomes_note_results(struct status *status, const struct spool *spool, uint64_t sending,
			   enum outcome outcome, const char *reason);
