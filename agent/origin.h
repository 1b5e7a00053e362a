/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The member "origin" of a report, which tells its board: docs/fleet.md. */
#pragma once

#include "agent/policy.h"
#include "base/buf.h"
#include "fleet/order.h"

/* Appends ,"origin":{...}, the last member of a report's JSON. started_s: since 1970. */
void origin_put(const struct policy *policy, const struct order *order, uint64_t started_s,
		struct buf *out);
