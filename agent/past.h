/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A new life of the agent takes up the orders, outcomes and results of the last one. */
#pragma once

#include "agent/agent.h"

/*
 * Goes on with orders whose recording had not begun, and reports the others. Their signatures and
 * this board's policy are asked again: both may have changed.
 */
void agent_take_up(struct agent *agent);
