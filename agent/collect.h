/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Moves what a recording leaves into the spool: segments while it lasts, results at its end. */
#pragma once

#include "agent/agent.h"

/* The recording has ended. status: that of waitpid(). */
void agent_collect(struct agent *agent, int status);
/* Takes segments that are whole, if a look for them is due. */
void agent_take_segments(struct agent *agent, uint64_t now_ns);
