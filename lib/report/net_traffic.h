/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What TCP sockets of one or more machines did, as far as the kernel's events tell.
 *
 * Only events of sockets have addresses. tcp_probe comes with each segment that a connection
 * receives, before TCP looks into it. It has the bytes in the segment, but not the segment's
 * sequence number; snd_nxt and snd_una are of the socket's own data. sock_send_length comes when a
 * call has handed over its bytes. It has the socket's address in memory, which the connection's
 * begin ties to its addresses. No event of UDP's successful sends and receives has a port.
 */
#pragma once

#include <netinet/in.h>

#include "marks/sort.h"
#include "report/rows.h"
#include "trace/host_clock.h"

/* Segments that are kept, of all sockets. */
#define NET_PROBES_MAX (1U << 19)
/* Calls that sent, of all sockets. */
#define NET_SENDS_MAX (1U << 19)
#define NET_ENDS_MAX (1U << 16)
#define NET_MACHINES_MAX 64U
/* A label, an address in brackets and a port. */
#define NET_NAME_BYTES (HOST_LABEL_BYTES + INET6_ADDRSTRLEN + 10)

/* Without padding: it is hashed as bytes. IPv4 addresses are mapped to IPv6. */
struct net_tuple {
	uint8_t near[16], far[16];
	uint16_t near_port, far_port;
};

struct net_thread {
	int32_t pid, tid; /* tid 0: unknown */
};

/* A segment that a socket received. Sequence numbers are extended to 64 bits. */
struct net_probe {
	uint64_t ts;
	uint64_t nxt;	 /* snd_nxt: all bytes before it were sent */
	uint64_t got;	 /* bytes received since the recording began, with this segment's */
	uint32_t flight; /* snd_nxt - snd_una: bytes without an acknowledgment before it */
	uint32_t losses; /* gaps in the recording until then; the lowest bit: one has not ended */
	struct net_thread reader; /* reads from the socket next */
};

static inline uint64_t net_probe_una(const struct net_probe *p)
{
	return p->nxt - p->flight;
}

/* A call that handed over bytes. */
struct net_send {
	uint64_t begin; /* the call began then, or later */
	bool is_call;	/* it is the begin of a system call */
	struct net_thread by;
	uint64_t end;
	uint64_t len;
};

/* A socket, by its addresses. */
struct net_end {
	struct net_tuple tuple;
	uint32_t machine;
	bool used, is_rest;
	bool is_several; /* several sockets had these addresses, or its events contradict */
	bool has_begun;	 /* the recording has its connection's begin, without a gap before */
	bool is_unsafe;	 /* it may have sent bytes again */
	uint64_t cookie;
	struct net_probe *probes; /* owned; in order of time */
	uint32_t count, cap;
	uint32_t clean;	   /* the first ones, up to when is_unsafe is set */
	uint64_t nxt, got; /* of the last probe, kept or not */
	uint64_t received; /* segments, kept or not */
	uint64_t resents;
	uint64_t begun;		/* when its connection began, if has_begun */
	struct net_send *sends; /* owned; in order of their ends; since its connection began */
	uint32_t send_count, send_cap;
	bool is_acked;	      /* it sent its FIN, and all is acknowledged */
	uint64_t sends_until; /* a later call may be missing; UINT64_MAX: none is */
	uint32_t read;	      /* probes whose reader is known, or never will be */
};

struct net_machine {
	char label[HOST_LABEL_BYTES]; /* "": the only one */
	bool is_tied;		      /* bound is known */
	bool is_partial;	      /* some of its segments were not recorded */
	bool is_blind;		      /* no retransmission was recorded */
	uint64_t losses;	      /* gaps in its recording; set before its end */
	uint64_t bound;		      /* ns: largest error of its times */
};

struct net_traffic {
	struct net_machine machines[NET_MACHINES_MAX];
	uint32_t machine_count;
	struct rows ends; /* of struct net_end */
	uint32_t probes, sends;
	bool is_full; /* some probes were not kept */
	struct mark_sort
		*arrows[NET_MACHINES_MAX]; /* owned; NULL, or as net_arrows_make() left them */
	struct scratch no_scratch;
};

void net_traffic_init(struct net_traffic *t);
void net_traffic_deinit(struct net_traffic *t);

/* The next machine, whose events come from now on. NULL: there are too many. */
struct net_machine *net_traffic_begin(struct net_traffic *t, const char *label);
/* After its last event. */
void net_traffic_end(struct net_traffic *t);

/* The last machine's socket. NULL: out of memory. */
struct net_end *net_end_get(struct net_traffic *t, const struct net_tuple *tuple);
/* The only socket at the other end. NULL: there is none, or it is not clear which one it is. */
const struct net_end *net_end_peer(const struct net_traffic *t, const struct net_end *e);

struct net_segment {
	uint64_t ts, cookie;
	uint32_t nxt, una, len;
	uint32_t losses; /* as net_probe's */
};
/* Returns 0 or -ENOMEM. */
int net_end_receive(struct net_traffic *t, struct net_end *e, const struct net_segment *s);
/* It sends bytes again. */
void net_end_resend(struct net_end *e);
/* Its connection began. losses: as net_probe's. */
void net_end_begin(struct net_end *e, uint64_t ts, uint32_t losses);
/* A call handed over bytes. is_lossy: others may be missing. Returns 0 or -ENOMEM. */
int net_end_send(struct net_traffic *t, struct net_end *e, const struct net_send *s, bool is_lossy);
/* A thread has read from it. losses: as net_probe's. */
void net_end_read(struct net_end *e, struct net_thread by, uint32_t losses);
void net_name(char to[NET_NAME_BYTES], const char *label, const uint8_t ip[16], uint16_t port,
	      bool with_port);
