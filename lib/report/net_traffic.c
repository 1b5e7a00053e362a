/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/net_traffic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"

/* Sequence numbers begin here, so that none is negative. */
#define NXT_FIRST (UINT64_C(1) << 32)

static void net_end_deinit(void *row)
{
	struct net_end *e = row;

	free(e->probes);
	free(e->sends);
}

void net_traffic_init(struct net_traffic *t)
{
	*t = (struct net_traffic){ 0 };
	rows_init(&t->ends, sizeof(struct net_end), net_end_deinit);
	t->ends.max = NET_ENDS_MAX;
}

void net_traffic_deinit(struct net_traffic *t)
{
	rows_deinit(&t->ends);
	for (uint32_t i = 0; i < t->machine_count; i++)
		mark_sort_free(t->arrows[i]);
}

struct net_machine *net_traffic_begin(struct net_traffic *t, const char *label)
{
	struct net_machine *m;

	if (t->machine_count == NET_MACHINES_MAX)
		return NULL;
	m = &t->machines[t->machine_count++];
	snprintf(m->label, sizeof(m->label), "%s", label);
	return m;
}

static void net_end_distrust(struct net_end *e)
{
	if (e->is_unsafe)
		return;
	e->is_unsafe = true;
	e->clean = e->count;
}

void net_traffic_end(struct net_traffic *t)
{
	const uint32_t machine = t->machine_count - 1;
	const struct net_machine *m = &t->machines[machine];

	for (uint32_t i = 0; i < t->ends.count; i++) {
		struct net_end *e = rows_at(&t->ends, i);

		if (e->machine != machine)
			continue;
		/* A retransmission may be among lost events. */
		if (m->losses || m->is_blind)
			net_end_distrust(e);
		if (!e->is_unsafe)
			e->clean = e->count;
		else if (m->is_blind)
			e->clean = 0;
	}
}

static struct row_key net_key(uint32_t machine, const struct net_tuple *tuple)
{
	struct row_key key =
		row_key_of_text((struct text){ (const char *)tuple, (uint32_t)sizeof(*tuple) });

	return row_key_join(key, (struct row_key){ machine, 0 });
}

struct net_end *net_end_get(struct net_traffic *t, const struct net_tuple *tuple)
{
	const uint32_t machine = t->machine_count - 1;
	struct net_end *e = rows_get(&t->ends, net_key(machine, tuple));

	if (!e || e->used)
		return e;
	e->used = true;
	e->is_rest = e == t->ends.rest;
	e->tuple = *tuple;
	e->machine = machine;
	e->nxt = NXT_FIRST;
	e->sends_until = UINT64_MAX;
	return e;
}

/* Addresses that each machine has for itself. */
static bool net_is_loopback(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff }, one[16] = { [15] = 1 };

	return !memcmp(ip, one, sizeof(one)) ||
	       (!memcmp(ip, mapped, sizeof(mapped)) && ip[12] == 127);
}

/* The only socket with these addresses. */
static const struct net_end *net_find(const struct net_traffic *t, const struct net_tuple *tuple,
				      uint32_t machine)
{
	const bool local = net_is_loopback(tuple->near) || net_is_loopback(tuple->far);
	const struct net_end *found = NULL;

	for (uint32_t i = local ? machine : 0; i < (local ? machine + 1 : t->machine_count); i++) {
		const struct net_end *e = rows_find(&t->ends, net_key(i, tuple));

		if (e && found)
			return NULL;
		found = e ?: found;
	}
	return found && !found->is_several ? found : NULL;
}

const struct net_end *net_end_peer(const struct net_traffic *t, const struct net_end *e)
{
	struct net_tuple far = { .near_port = e->tuple.far_port, .far_port = e->tuple.near_port };
	const struct net_end *peer;

	if (e->is_rest)
		return NULL;
	memcpy(far.near, e->tuple.far, sizeof(far.near));
	memcpy(far.far, e->tuple.near, sizeof(far.far));
	peer = net_find(t, &far, e->machine);
	/* A connection to itself has one socket. */
	if (!peer || peer == e || net_find(t, &e->tuple, e->machine) != e)
		return NULL;
	return t->machines[e->machine].is_partial || t->machines[peer->machine].is_partial ? NULL
											   : peer;
}

int net_end_receive(struct net_traffic *t, struct net_end *e, const struct net_segment *s)
{
	const int32_t more = (int32_t)(s->nxt - (uint32_t)e->nxt);

	e->got += s->len;
	if (e->is_rest) {
		e->received++;
		return 0;
	}
	if (!e->received++) {
		e->cookie = s->cookie;
		e->nxt += s->nxt;
	} else {
		/* snd_nxt of one socket never decreases. */
		e->is_several |= e->cookie != s->cookie || more < 0;
		e->nxt += more < 0 ? 0 : (uint32_t)more;
	}
	if (s->losses)
		net_end_distrust(e);
	if (t->probes == NET_PROBES_MAX) {
		t->is_full = true;
		net_end_distrust(e);
		return 0;
	}
	if (vec_push(e->probes, e->count, e->cap,
		     (struct net_probe){ .ts = s->ts,
					 .nxt = e->nxt,
					 .got = e->got,
					 .flight = s->nxt - s->una,
					 .losses = s->losses }) < 0)
		return -ENOMEM;
	t->probes++;
	return 0;
}

void net_end_resend(struct net_end *e)
{
	e->resents++;
	net_end_distrust(e);
}

void net_end_begin(struct net_end *e, uint64_t ts, uint32_t losses)
{
	e->is_several |= e->has_begun || e->received > 0;
	e->has_begun = !losses;
	e->begun = ts;
}

int net_end_send(struct net_traffic *t, struct net_end *e, const struct net_send *s, bool is_lossy)
{
	if (!e->has_begun || e->is_rest)
		return 0;
	if (is_lossy || t->sends == NET_SENDS_MAX)
		e->sends_until = MIN(e->sends_until, s->begin);
	if (e->sends_until != UINT64_MAX)
		return 0;
	if (vec_push(e->sends, e->send_count, e->send_cap, *s) < 0)
		return -ENOMEM;
	t->sends++;
	return 0;
}

void net_end_read(struct net_end *e, struct net_thread by, uint32_t losses)
{
	/* Another thread's read may be among lost events. */
	for (; e->read < e->count; e->read++)
		if (e->probes[e->read].losses == losses && !(losses & 1))
			e->probes[e->read].reader = by;
}

void net_name(char to[NET_NAME_BYTES], const char *label, const uint8_t ip[16], uint16_t port,
	      bool with_port)
{
	char text[INET6_ADDRSTRLEN] = "?";
	struct in6_addr a;
	bool is_ip4;

	memcpy(&a, ip, sizeof(a));
	is_ip4 = IN6_IS_ADDR_V4MAPPED(&a);
	inet_ntop(is_ip4 ? AF_INET : AF_INET6, is_ip4 ? ip + 12 : ip, text, sizeof(text));
	if (with_port)
		snprintf(to, NET_NAME_BYTES, is_ip4 ? "%s%s%s:%u" : "%s%s[%s]:%u", label,
			 *label ? " " : "", text, port);
	else
		snprintf(to, NET_NAME_BYTES, "%s%s%s", label, *label ? " " : "", text);
}
