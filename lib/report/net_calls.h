/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The calls by which tasks send, from sock_send_length. The event comes at a call's end. The call
 * began after the task's last event that is certainly outside of it: the begin of a system call, or
 * the end of a send or a receive before it. It began after the connection did, too.
 */
#pragma once

#include "report/kind.h"
#include "report/net_traffic.h"

struct net_calls {
	struct report report;	     /* handlers get one */
	struct net_traffic *traffic; /* borrowed */
	bool has_all_enters; /* set by the owner: each begin of a system call has its event */
	struct rows tasks;   /* by tid: the time of the last event outside of a send */
	struct rows sockets; /* by address in memory: struct net_end of a connection */
	struct field_at sk, protocol, len, read_sk, read_len;
};

/* net_probe.losses, for an event that comes now. */
static inline uint32_t net_losses(const struct report_env *env)
{
	return (uint32_t)MIN(env->losses, (uint64_t)INT32_MAX) << 1 | (env->losses_open > 0);
}

void net_calls_init(struct net_calls *c, struct report_env *env, struct net_traffic *t);
void net_calls_deinit(struct net_calls *c);
/* The socket at that address has a connection; e NULL: it has none any more. 0 or -ENOMEM. */
int net_calls_bind(struct net_calls *c, uint64_t sk, struct net_end *e);
/* NULL: that socket has no connection that began in the recording. */
struct net_end *net_calls_end(const struct net_calls *c, uint64_t sk);
/* Has the calls of the recording noted, as far as they are there. */
void net_calls_find(struct net_calls *c);
