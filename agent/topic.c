/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/topic.h"

#include "agent/state.h"

void topic_put_orders(struct buf *out, const struct policy *policy, const char *group)
{
	buf_printf(out, "traced/%s/%s/orders", policy->fleet, group);
}

void topic_put_status(struct buf *out, const struct policy *policy)
{
	buf_printf(out, "traced/%s/" STATE_ALL "/status/%s", policy->fleet, policy->id);
}
