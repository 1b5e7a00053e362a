/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of a fleet's topics: docs/fleet.md. Fleets, groups and boards are names: word.h. */
#pragma once

#include "agent/policy.h"
#include "base/buf.h"

/* group: STATE_ALL or one of the board's. */
void topic_put_orders(struct buf *out, const struct policy *policy, const char *group);
/* A board may write to this one alone. */
void topic_put_status(struct buf *out, const struct policy *policy);
