/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file for Prometheus' node_exporter, if the policy names one. */
#pragma once

#include "agent/agent.h"
#include "base/io.h"

#define METRICS_INTERVAL_NS (10 * NSEC_PER_SEC)

/* Writes it, if that is due. */
void agent_metrics_tick(struct agent *agent);
/* up: the agent goes on. */
void agent_metrics_write(struct agent *agent, bool up);
