/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/net_pairs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/search.h"

#define NO_PROBE UINT32_MAX

/* No event is missing from this one to a later one of the same machine. */
static bool net_is_whole(const struct net_probe *from, uint64_t losses)
{
	return !(from->losses & 1) && from->losses >> 1 == losses;
}

static bool net_is_next_known(const struct net_end *e, uint32_t i)
{
	return i + 1 < e->count && net_is_whole(&e->probes[i], e->probes[i + 1].losses >> 1);
}

/* All bytes before this one were acknowledged once the segment was there. */
static int64_t net_acked(const struct net_end *e, uint32_t i)
{
	return (int64_t)net_probe_una(&e->probes[net_is_next_known(e, i) ? i + 1 : i]);
}

bool net_error(const struct net_traffic *t, uint32_t one, uint32_t other, uint64_t *ret)
{
	const struct net_machine *a = &t->machines[one], *b = &t->machines[other];

	*ret = one == other ? 0 : a->bound + b->bound;
	return one == other || (a->is_tied && b->is_tied);
}

static int64_t net_begin(const struct net_way *w)
{
	if (!w->from->has_begun || !w->to->has_begun || !w->from->clean)
		return INT64_MIN;
	return (int64_t)net_probe_una(&w->from->probes[0]);
}

/* After a loss, only acknowledgments of bytes that came after it bound the offset closely. */
static void net_find_least(struct net_way *w, bool by_begin, uint64_t error)
{
	const struct net_end *from = w->from, *to = w->to;
	int64_t offset = net_begin(w);
	uint32_t i = 0, counted = 0, whole = 0;

	for (uint32_t k = 0; k < to->count; k++) {
		if (to->probes[k].losses && (!k || !net_is_next_known(to, k - 1))) {
			offset = INT64_MIN;
			whole = k + 1;
		}
		for (; !by_begin && i < from->count; i++) {
			const uint64_t until = from->probes[i].ts + error;

			if (until >= to->probes[k].ts)
				break;
			while (counted < k && to->probes[counted].ts <= until)
				counted++;
			if (counted >= whole)
				offset = MAX(offset,
					     net_acked(from, i) -
						     (counted ? (int64_t)to->probes[counted - 1].got
							      : 0));
		}
		w->least[k] = offset == INT64_MIN ? offset : offset + (int64_t)to->probes[k].got;
	}
}

static void net_find_most(struct net_way *w, uint64_t error)
{
	const struct net_end *from = w->from, *to = w->to;
	int64_t offset = INT64_MAX;
	uint32_t i = from->clean, counted = to->count;

	for (uint32_t k = to->count; k-- > 0;) {
		for (; i > 0; i--) {
			const uint64_t ts = from->probes[i - 1].ts;

			if (ts < error || ts - error <= to->probes[k].ts)
				break;
			while (counted > k + 1 && to->probes[counted - 1].ts >= ts - error)
				counted--;
			offset = MIN(offset, (int64_t)from->probes[i - 1].nxt -
						     (int64_t)to->probes[counted - 1].got);
		}
		w->most[k] = offset == INT64_MAX ? offset : offset + (int64_t)to->probes[k].got;
		w->differs |= w->least[k] > w->most[k];
	}
}

static int net_send_compare(const void *a, const void *b)
{
	const struct net_send *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

/*
 * Up to where the sender's own events confirm its calls: at the last one they have to agree, so
 * that none is missing. begun: the calls in order of their begins. INT64_MIN: nowhere.
 */
static int64_t net_find_called(const struct net_end *from, const struct net_send *begun)
{
	const uint64_t first = net_probe_una(&from->probes[0]);
	uint64_t most = first, least = first;
	int64_t called = INT64_MIN;

	for (uint32_t i = 0, k = 0, ended = 0; i < from->count; i++) {
		const struct net_probe *p = &from->probes[i];

		if (p->losses || p->ts >= from->sends_until)
			break;
		for (; k < from->send_count && begun[k].begin <= p->ts; k++)
			most += begun[k].len;
		for (; ended < from->send_count && from->sends[ended].end < p->ts; ended++)
			least += from->sends[ended].len;
		if (p->nxt > most)
			return INT64_MIN;
		called = p->nxt == least ? (int64_t)p->nxt : INT64_MIN;
	}
	return called;
}

/* The same by what came. A sender that closes has no event afterwards but for its state. */
static int64_t net_find_called_by(const struct net_way *w, const struct net_traffic *t,
				  int64_t until)
{
	const struct net_end *from = w->from, *to = w->to;
	bool all = false;

	if (!from->is_acked || from->is_unsafe || w->differs || from->sends_until != UINT64_MAX ||
	    t->machines[from->machine].losses)
		return w->called;
	for (uint32_t i = 0; i < to->count; i++) {
		if (w->least[i] > until)
			return INT64_MIN;
		all |= w->least[i] == until;
	}
	return all ? until : w->called;
}

static int net_find_calls(struct net_way *w, const struct net_traffic *t)
{
	const struct net_end *from = w->from;
	_cleanup_free_ struct net_send *begun = NULL;
	int64_t until;

	w->called = INT64_MIN;
	if (!from->send_count || net_begin(w) == INT64_MIN)
		return 0;
	begun = malloc(from->send_count * sizeof(*begun));
	w->calls = malloc(from->send_count * sizeof(*w->calls));
	if (!begun || !w->calls)
		return -ENOMEM;
	memcpy(begun, from->sends, from->send_count * sizeof(*begun));
	qsort(begun, from->send_count, sizeof(*begun), net_send_compare);
	until = net_begin(w);
	for (; w->call_count < from->send_count; w->call_count++) {
		until += (int64_t)begun[w->call_count].len;
		w->calls[w->call_count] = (struct net_call){ begun[w->call_count], until };
	}
	w->called = net_find_called(from, begun);
	w->called = net_find_called_by(w, t, until);
	return 0;
}

int net_way_find(struct net_way *ret, const struct net_traffic *t, const struct net_end *from,
		 const struct net_end *to, bool by_begin)
{
	struct net_way w = { .from = from, .to = to };
	uint64_t error;

	by_begin |= !net_error(t, from->machine, to->machine, &error);
	w.least = calloc((size_t)to->count + 1, sizeof(*w.least));
	w.most = calloc((size_t)to->count + 1, sizeof(*w.most));
	*ret = w;
	if (!w.least || !w.most)
		return -ENOMEM;
	net_find_least(ret, by_begin, error);
	for (uint32_t k = 0; by_begin && k < to->count; k++)
		ret->most[k] = INT64_MAX;
	if (!by_begin)
		net_find_most(ret, error);
	return net_find_calls(ret, t);
}

void net_way_deinit(struct net_way *w)
{
	free(w->least);
	free(w->most);
	free(w->calls);
}

/* The segment came before its sender sent any byte again. */
static bool net_is_safe(const struct net_way *w, uint32_t i)
{
	return !w->differs && (!w->from->is_unsafe || w->most[i] != INT64_MAX);
}

static bool net_has_data(const struct net_end *e, uint32_t i)
{
	return e->probes[i].got > (i ? e->probes[i - 1].got : 0);
}

/* The sender's last event at which it had not sent all bytes that were there with segment i. */
static enum net_verdict net_pair_data(const struct net_way *w, uint32_t i, uint32_t *ret)
{
	const struct net_end *from = w->from;
	uint32_t at;

	if (!net_has_data(w->to, i))
		return NET_UNPAIRED;
	if (!net_is_safe(w, i))
		return NET_CUT;
	if (w->least[i] == INT64_MIN)
		return w->to->probes[i].losses ? NET_CUT : NET_UNPAIRED;
	at = lower_bound(k, from->count, (int64_t)from->probes[k].nxt < w->least[i]);
	if (!at)
		return NET_UNPAIRED;
	*ret = *ret == NO_PROBE ? at - 1 : MAX(*ret, at - 1);
	return NET_PAIRED;
}

/* The begin of the call that sent the last byte of segment i. */
static bool net_pair_call(const struct net_way *w, uint32_t i, uint64_t *ret)
{
	const int64_t place = w->least[i];

	if (!net_has_data(w->to, i) || !net_is_safe(w, i) || place == INT64_MIN ||
	    place > w->called)
		return false;
	*ret = w->calls[lower_bound(k, w->call_count, w->calls[k].until < place)].send.begin;
	return true;
}

/* The sender's event with which the bytes were there that segment i acknowledges. out: their way.
 */
static enum net_verdict net_pair_ack(const struct net_way *out, uint32_t i, uint32_t *ret)
{
	const struct net_end *by = out->from, *from = out->to;
	const int64_t acked = net_acked(by, i);
	uint32_t at;

	if (acked == (int64_t)net_probe_una(&by->probes[i]))
		return i + 1 < by->count && !net_is_next_known(by, i) ? NET_CUT : NET_UNPAIRED;
	at = lower_bound(k, from->count, out->most[k] < acked);
	if (!at)
		return out->differs ? NET_CUT : NET_UNPAIRED;
	/* Behind the last event, or among lost ones: they came at any time after the one before. */
	if (at == from->count || !net_is_next_known(from, at - 1))
		at--;
	if (!net_is_safe(out, at))
		return NET_CUT;
	*ret = *ret == NO_PROBE ? at : MAX(*ret, at);
	return NET_PAIRED;
}

/* No other call can have sent its last byte, or sent before it. */
static bool net_is_alone(const struct net_way *w, uint32_t call, uint64_t ended)
{
	const struct net_send *s = &w->calls[call].send;

	return ended <= s->begin &&
	       (call + 1 == w->call_count || w->calls[call + 1].send.begin >= s->end);
}

/* The segment i is the first one with which that byte was there. */
static bool net_brings(const struct net_way *w, uint32_t i, int64_t byte)
{
	return net_has_data(w->to, i) && net_is_safe(w, i) && w->least[i] >= byte &&
	       (!i || w->most[i - 1] < byte);
}

bool net_arrow_next(const struct net_way *w, struct net_arrow_at *at, uint64_t error,
		    struct net_arrow *ret)
{
	while (at->call < w->call_count && w->calls[at->call].until <= w->called) {
		const struct net_call *call = &w->calls[at->call];
		const bool is_alone = net_is_alone(w, at->call, at->ended);
		const struct net_probe *p;

		while (at->segment < w->to->count && w->least[at->segment] < call->until)
			at->segment++;
		if (at->segment == w->to->count)
			return false;
		p = &w->to->probes[at->segment];
		at->ended = MAX(at->ended, call->send.end);
		at->call++;
		if (!is_alone || !call->send.is_call || !call->send.by.tid || !p->reader.tid ||
		    !net_brings(w, at->segment, call->until) || p->ts + error < call->send.begin)
			continue;
		*ret = (struct net_arrow){ &call->send, p };
		return true;
	}
	return false;
}

static enum net_verdict net_pair_events(const struct net_traffic *t, const struct net_way *in,
					const struct net_way *out, uint32_t i, uint64_t *ret)
{
	const struct net_end *from = in->from, *to = in->to;
	enum net_verdict data, ack;
	uint32_t at = NO_PROBE;
	uint64_t until;

	data = net_pair_data(in, i, &at);
	ack = net_pair_ack(out, i, &at);
	if (at == NO_PROBE)
		return data == NET_CUT || ack == NET_CUT ? NET_CUT : NET_UNPAIRED;
	*ret = from->probes[at].ts;
	/* A later event of the sender may be among those that were lost. */
	if (from->machine == to->machine)
		until = to->probes[i].losses >> 1;
	else if (at + 1 < from->count)
		until = from->probes[at + 1].losses >> 1;
	else
		until = t->machines[from->machine].losses;
	return net_is_whole(&from->probes[at], until) ? NET_PAIRED : NET_CUT;
}

enum net_verdict net_pair(const struct net_traffic *t, const struct net_way *in,
			  const struct net_way *out, uint32_t i, uint64_t *ret, bool *ret_by_call)
{
	const enum net_verdict verdict = net_pair_events(t, in, out, i, ret);
	uint64_t begin;

	*ret_by_call = net_pair_call(in, i, &begin) && (verdict != NET_PAIRED || begin > *ret);
	if (!*ret_by_call)
		return verdict;
	*ret = begin;
	return NET_PAIRED;
}

void net_lead_add(struct net_lead *lead, int64_t ns)
{
	lead->most = lead->count++ ? MIN(lead->most, ns) : ns;
}

void net_lead_take(struct net_lead *lead, const struct net_way *begun)
{
	for (uint32_t i = 0; i < begun->to->count; i++) {
		const uint64_t ts = begun->to->probes[i].ts;
		uint32_t at = NO_PROBE;
		uint64_t begin;

		const bool by_call = net_pair_call(begun, i, &begin);

		if (net_pair_data(begun, i, &at) == NET_PAIRED)
			begin = by_call ? MAX(begin, begun->from->probes[at].ts)
					: begun->from->probes[at].ts;
		else if (!by_call)
			continue;
		net_lead_add(lead, (int64_t)(ts - begin));
	}
}
