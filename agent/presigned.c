/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/presigned.h"

#include "agent/kept.h"

void presigned_put_query(void *data, uint64_t serial, struct buf *url)
{
	_cleanup_kept_ struct kept kept = { .order = BUF_INIT };
	_cleanup_order_ struct order order = { 0 };
	const struct agent *a = data;

	if (!a->policy.presigned || kept_get(a->state.dirfd, serial, &kept, NULL) < 0 ||
	    agent_read_order(a, kept.order.data, kept.order.len, &order, NULL) != VERDICT_TAKE ||
	    order.serial != serial)
		return;
	for (size_t i = 0; i < order.presigned.count; i++)
		buf_printf(url, "%c%s", i ? '&' : '?', order.presigned.items[i]);
}
