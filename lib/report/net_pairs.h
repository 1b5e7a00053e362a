/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For a segment that a socket received, the last event of the other socket that was before the
 * segment was sent. Two facts give it:
 *
 * - Bytes that were received were sent before. The sender's events tell what it had sent until
 * then.
 * - Bytes that were acknowledged were received before. Each segment comes with an event, so what
 *   the next event knows beyond this one was acknowledged by this one's segment.
 *
 * For both it has to be known how far a socket had received the other one's bytes. It is counted
 * from its events, from the recording's begin. Events can be missing, and tcp_probe tells only the
 * last 16 bits of a length: so the place of an event's last byte in the sender's sequence is the
 * count and an offset that can grow, but not shrink. The same two facts bound it, together with the
 * times of both sockets and the largest error of their clocks: what was acknowledged earlier bounds
 * it below, what was sent later above. The connection's begin bounds it below without a clock. Of
 * the places that are possible, the one counts that makes the answer earlier: it is never too late.
 *
 * Calls tell more where they were recorded since the connection began. In order of their begins,
 * their lengths add up to a byte's place: it was not sent before the call began with which they
 * reach it, whatever other threads did meanwhile. Some ways of sending have no event, and of a call
 * that has not ended nothing is known. So what the calls tell has to agree with snd_nxt: never less
 * than was sent, and as much at the sender's last event, which is behind the byte.
 *
 * Bytes that come twice are counted twice. A sender tells when it sends again: what is received
 * after that is not paired.
 */
#pragma once

#include "report/net_traffic.h"

struct net_call {
	struct net_send send;
	int64_t until; /* its last byte, and those of all that began before it, are before this */
};

/* The data from one socket to the other. */
struct net_way {
	const struct net_end *from, *to;
	/* Owned; for each probe of `to`, where its last byte is in the sequence of `from`. */
	int64_t *least;		/* INT64_MIN: unknown */
	int64_t *most;		/* INT64_MAX: unknown */
	bool differs;		/* no place is possible for some */
	struct net_call *calls; /* owned; of `from`, in order of their begins */
	uint32_t call_count;
	int64_t called; /* bytes before this are known to be of these calls */
};

enum net_verdict {
	NET_PAIRED,
	NET_UNPAIRED,
	NET_CUT,
};

/*
 * by_begin: by connections' begins alone, which no clock can falsify. Returns 0 or -ENOMEM; call
 * net_way_deinit() in any case.
 */
int net_way_find(struct net_way *ret, const struct net_traffic *t, const struct net_end *from,
		 const struct net_end *to, bool by_begin);
void net_way_deinit(struct net_way *w);
/*
 * The segment i that in->to received; out is the way back. ret: the time of the event of in->from,
 * if it is paired. ret_by_call: it is the begin of the call that sent the segment's last byte.
 */
enum net_verdict net_pair(const struct net_traffic *t, const struct net_way *in,
			  const struct net_way *out, uint32_t i, uint64_t *ret, bool *ret_by_call);
/* A call, and the segment that brought its last byte. */
struct net_arrow {
	const struct net_send *send;
	const struct net_probe *receipt;
};
/*
 * The way's next call of which both are certain. at: {0}, or as it was left. error: net_error() of
 * its sockets. False: there is none.
 */
struct net_arrow_at {
	uint32_t call, segment;
	uint64_t ended; /* the last end of the calls before */
};
bool net_arrow_next(const struct net_way *w, struct net_arrow_at *at, uint64_t error,
		    struct net_arrow *ret);
/* Largest error of a difference between their times. False: it is unknown. */
bool net_error(const struct net_traffic *t, uint32_t one, uint32_t other, uint64_t *ret);

/* How far times of one machine are ahead, by events whose order is certain. */
struct net_lead {
	int64_t most; /* ns; of the machine that received */
	uint64_t count;
};
/* Takes one more: the receipt less an earlier event of the other machine. */
void net_lead_add(struct net_lead *lead, int64_t ns);
/* Takes what the segments of a way by_begin tell. */
void net_lead_take(struct net_lead *lead, const struct net_way *begun);
