/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An agent with a broker follows the topics' orders, and reports its status. */
#pragma once

#include "agent/agent.h"

/* Does what is due. revents: what poll() found on the broker's descriptor. */
void agent_broker_step(struct agent *agent, short revents);
/* CLOCK_BOOTTIME: the next call, if nothing happens before. */
uint64_t agent_broker_next_ns(const struct agent *agent);
/* Says that the agent ends. */
void agent_broker_end(struct agent *agent);
