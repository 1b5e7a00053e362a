/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/event_head.h"

struct event_head event_head_of(const struct common_fields *common, bool big_endian)
{
	uint32_t least = MAX(common->size, (uint32_t)sizeof(uint16_t));

	/* Covers each field that is read at its offset: a format may claim smaller sizes. */
	least = MAX(least, common->flags_offset + 1);
	least = MAX(least, common->preempt_offset + 1);
	least = MAX(least, common->lazy_offset + 1);
	least = MAX(least, common->migrate_offset + 1);
	least = MAX(least, common->pid_offset + (uint32_t)sizeof(int32_t));
	return (struct event_head){
		.common = common,
		.least = least,
		/* type, flags, preempt_count, pid */
		.usual = !big_endian && common->flags_offset == 2 && common->preempt_offset == 3 &&
			 common->pid_offset == 4,
		.big_endian = big_endian,
	};
}
