/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the agent's last life left: orders that wait, outcomes, results. */
#pragma once

#include "agent/agent.h"

/*
 * Goes on with orders whose recording had not begun, and reports the others. Their signatures and
 * this board's policy are asked again: both may have changed.
 */
void agent_take_up(struct agent *agent);
