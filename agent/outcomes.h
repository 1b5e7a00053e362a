/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The last outcomes on the disk, so that the status has them after the agent's end, too. */
#pragma once

#include "agent/status.h"
#include "base/error.h"

/* Saves those that outlive the agent. state_fd: the folder. */
int outcomes_save(const struct status *status, int state_fd, struct error *err);
/*
 * Notes what was saved. -EBADMSG: a line makes no sense; those before it are noted. No safety
 * depends on them.
 */
int outcomes_load(struct status *status, int state_fd, struct error *err);
