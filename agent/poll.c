/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/poll.h"

#include <string.h>

#include "base/io.h"
#include "fleet/order.h"

#define FIRST_RETRY_NS (30 * NSEC_PER_SEC)

static int poll_failed(struct poll *p, const struct policy *policy, uint64_t retry_after_s, int r)
{
	p->failures++;
	backoff_failed(&p->backoff, now_ns(CLOCK_BOOTTIME),
		       MIN(policy->interval_ns, FIRST_RETRY_NS), retry_after_s);
	return r;
}

int poll_orders(struct poll *p, struct http *http, const struct policy *policy, struct buf *ret,
		struct error *err)
{
	struct http_reply reply;
	int r;

	p->polls++;
	r = http_get(http, p->url, p->etag, ret, ORDER_MAX, &reply, err);
	if (r < 0)
		return poll_failed(p, policy, 0, r);
	/* 404: nobody has put an order there. */
	if (reply.status != 200 && reply.status != 304 && reply.status != 404) {
		error_set(err, -EIO, "%s: status %ld", p->url, reply.status);
		return poll_failed(p, policy, reply.retry_after_s, -EIO);
	}
	p->last_ns = now_ns(CLOCK_REALTIME);
	p->unchanged += reply.status == 304;
	backoff_succeeded(&p->backoff, now_ns(CLOCK_BOOTTIME), policy->interval_ns);
	if (reply.status != 200)
		return 0;
	memcpy(p->new_etag, reply.etag, sizeof(p->new_etag));
	return 1;
}

void poll_handled(struct poll *p)
{
	memcpy(p->etag, p->new_etag, sizeof(p->etag));
}
