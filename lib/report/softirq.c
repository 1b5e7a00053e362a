/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/softirq.h"

/* The order is that of include/linux/interrupt.h. */
static const char *const softirq_names[] = { "HI",	 "TIMER",   "NET_TX", "NET_RX",	 "BLOCK",
					     "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU" };

struct text softirq_name(uint64_t vec)
{
	const char *name = vec < ARRAY_SIZE(softirq_names) ? softirq_names[vec] : "?";

	return (struct text){ name, (uint32_t)strlen(name) };
}
