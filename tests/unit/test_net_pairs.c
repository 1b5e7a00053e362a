/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pairs of segments in simulated connections, whose sends are known: no segment was sent before the
 * event or the call that counts as earlier, whatever is lost, sent again or cut in its length, and
 * if the clocks are wrong by no more than their bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "random_series.h"
#include "report/net_pairs.h"

#define SEGMENTS_MAX 600U
#define STEPS 500U
#define FIRST_NS UINT64_C(1000000000000)
#define ROUNDS 400U
/* The kernel's field has so many bits. */
#define LENGTH_MASK 0xffffU

struct segment {
	uint64_t sent, arrives;
	uint64_t end, ack; /* sequence numbers behind its data, and behind what its sender has */
	uint32_t length;
	bool arrived;
};

/* An event of one socket, as its machine recorded it. */
struct event_of {
	uint64_t ts, sent, end;
	struct net_segment segment;
	bool resends;
};

/* A call that handed over what one or more segments have. */
struct call_of {
	uint64_t begin, end, last; /* last: the sequence number behind its bytes */
	uint64_t length;
	bool hidden; /* it has no event */
};

struct host {
	uint64_t nxt, una, has; /* sent, acknowledged, received; from 0 */
	uint64_t written;	/* by its programs */
	uint32_t first;		/* its first sequence number */
	int64_t wrong;		/* its clock */
	struct segment segments[SEGMENTS_MAX];
	uint32_t segment_count;
	struct event_of events[SEGMENTS_MAX];
	uint32_t event_count;
	struct call_of calls[SEGMENTS_MAX];
	uint32_t call_count;
	uint32_t waiting[SEGMENTS_MAX]; /* lengths that were handed over, and wait to be sent */
	uint32_t waiting_from, waiting_count;
	uint64_t gap_from, gap_until; /* its recorder loses events; gap_from: the first ones */
	uint32_t gaps;
	bool in_gap;
};

struct wishes {
	bool loses, resends, is_long, has_begin, calls, hides, is_slow, is_even;
	uint64_t bound;
	int64_t wrong; /* of the second machine's clock */
};

static uint64_t random_state = RANDOM_FIRST;

static uint64_t pick(uint64_t below)
{
	return random_next(&random_state) % below;
}

static void host_send(struct host *h, uint64_t now, uint32_t length)
{
	const struct segment *last = h->segment_count ? &h->segments[h->segment_count - 1] : NULL;
	uint64_t arrives = now + 20000 + pick(pick(10) ? 30000 : 3000000);

	if (h->segment_count == SEGMENTS_MAX)
		return;
	h->nxt += length;
	h->segments[h->segment_count++] = (struct segment){
		.sent = now,
		.arrives = MAX(arrives, last ? last->arrives + 1 : 0),
		.end = h->nxt,
		.ack = h->has,
		.length = length,
	};
}

/* The call of a segment: the last one goes on, or another thread's begins. */
static void host_call(struct host *h, uint64_t now, uint32_t length, const struct wishes *w)
{
	struct call_of *c = h->call_count ? &h->calls[h->call_count - 1] : NULL;

	if (!c || pick(3)) {
		c = &h->calls[h->call_count++];
		*c = (struct call_of){ .begin = now - pick(40000) - 1,
				       .hidden = w->hides && !pick(100) };
	}
	c->end = now + 1 + pick(pick(10) ? 10000 : 1000000);
	c->length += length;
	c->last = h->written;
}

/* A program hands over bytes. */
static void host_write(struct host *h, uint64_t now, uint32_t length, const struct wishes *w)
{
	if (h->segment_count == SEGMENTS_MAX || h->waiting_count == SEGMENTS_MAX)
		return;
	h->written += length;
	if (w->calls && length)
		host_call(h, now, length, w);
	if (w->is_slow && length && (h->waiting_from < h->waiting_count || pick(2)))
		h->waiting[h->waiting_count++] = length;
	else
		host_send(h, now, length);
}

static void host_flush(struct host *h, uint64_t now)
{
	while (h->waiting_from < h->waiting_count && h->segment_count < SEGMENTS_MAX && pick(2))
		host_send(h, now, h->waiting[h->waiting_from++]);
}

static void host_record(struct host *h, uint64_t now, struct event_of event, const struct wishes *w)
{
	/* Some CPUs lose nothing during a gap. */
	h->in_gap = now < h->gap_until;
	if (h->in_gap && pick(2))
		return;
	event.segment.losses = h->gaps << 1 | h->in_gap;
	event.ts = event.segment.ts = (uint64_t)((int64_t)now + h->wrong);
	h->events[h->event_count++] = event;
	if (w->loses && !pick(60) && !h->in_gap) {
		h->gap_from = h->gaps++ ? h->gap_from : now;
		h->gap_until = now + pick(300000);
	}
}

/* Sends the last data again: its receiver gets it twice. */
static void host_resend(struct host *h, uint64_t now, const struct wishes *w)
{
	const uint32_t length = h->segment_count ? h->segments[h->segment_count - 1].length : 0;

	if (!length || h->segment_count == SEGMENTS_MAX)
		return;
	host_record(h, now, (struct event_of){ .resends = true }, w);
	h->nxt -= length;
	host_send(h, now, length);
}

static void host_receive(struct host *h, struct segment *s, uint64_t now, const struct wishes *w)
{
	const struct event_of event = {
		.sent = s->sent,
		.end = s->end,
		.segment = { .nxt = h->first + (uint32_t)h->nxt,
			     .una = h->first + (uint32_t)h->una,
			     .len = s->length & LENGTH_MASK },
	};

	host_record(h, now, event, w);
	s->arrived = true;
	h->una = MAX(h->una, s->ack);
	h->has = MAX(h->has, s->end);
}

static struct segment *next_arrival(struct host *hosts, uint64_t until, int *ret_to)
{
	struct segment *next = NULL;

	for (int from = 0; from < 2; from++)
		for (uint32_t i = 0; i < hosts[from].segment_count; i++) {
			struct segment *s = &hosts[from].segments[i];

			if (s->arrived || s->arrives > until ||
			    (next && s->arrives >= next->arrives))
				continue;
			next = s;
			*ret_to = !from;
		}
	return next;
}

static uint32_t pick_length(const struct wishes *w)
{
	if (w->is_even)
		return 100;
	if (w->is_long && !pick(8))
		return (uint32_t)(60000 + pick(150000));
	return pick(4) ? (uint32_t)(1 + pick(1460)) : 100;
}

static void simulate(struct host *hosts, const struct wishes *w)
{
	uint64_t now = FIRST_NS;

	memset(hosts, 0, 2 * sizeof(*hosts));
	hosts[0].first = (uint32_t)random_next(&random_state);
	/* Its numbers wrap. */
	hosts[1].first = UINT32_MAX - 20000;
	hosts[1].wrong = w->wrong;
	for (uint32_t step = 0; step < STEPS; step++) {
		const int who = (int)pick(2);
		struct segment *s;
		int to = 0;

		now += 1 + pick(pick(8) ? 50000 : 2000000);
		while ((s = next_arrival(hosts, now, &to))) {
			host_receive(&hosts[to], s, s->arrives, w);
			/* An acknowledgment, or an answer. */
			if (s->length && pick(4))
				host_write(&hosts[to], s->arrives + 1, pick(2) ? pick_length(w) : 0,
					   w);
		}
		if (w->resends && !pick(100))
			host_resend(&hosts[who], now, w);
		else if (!pick(3))
			host_write(&hosts[who], now, pick_length(w), w);
		host_flush(&hosts[0], now);
		host_flush(&hosts[1], now);
	}
	/* The recording ends now. */
	for (int i = 0; i < 2; i++)
		for (uint32_t k = 0; k < hosts[i].call_count; k++)
			hosts[i].calls[k].hidden |= hosts[i].calls[k].end > now;
}

static struct net_tuple tuple_of(int host)
{
	struct net_tuple t = { .near_port = (uint16_t)(1000 + host),
			       .far_port = (uint16_t)(1001 - host) };

	memset(t.near, 10 + host, sizeof(t.near));
	memset(t.far, 11 - host, sizeof(t.far));
	return t;
}

static int call_compare(const void *a, const void *b)
{
	const struct call_of *x = a, *y = b;

	return (x->end > y->end) - (x->end < y->end);
}

static void give_calls(struct net_traffic *t, struct net_end *e, const struct host *h)
{
	struct call_of calls[SEGMENTS_MAX];

	memcpy(calls, h->calls, sizeof(calls));
	qsort(calls, h->call_count, sizeof(*calls), call_compare);
	for (uint32_t k = 0; k < h->call_count; k++) {
		const struct net_send send = {
			.begin = (uint64_t)((int64_t)calls[k].begin + h->wrong),
			.end = (uint64_t)((int64_t)calls[k].end + h->wrong),
			.len = calls[k].length,
			.is_call = true,
			.by = { 1, 1 },
		};
		const bool is_lossy = h->gaps && calls[k].end >= h->gap_from;

		if (!calls[k].hidden && !(is_lossy && pick(2)))
			assert_int_equal(net_end_send(t, e, &send, is_lossy), 0);
	}
}

static void give(struct net_traffic *t, const struct host *hosts, int i, const struct wishes *w)
{
	const struct net_tuple tuple = tuple_of(i);
	struct net_end *e = net_end_get(t, &tuple);

	assert_non_null(e);
	if (w->has_begin)
		net_end_begin(e, FIRST_NS / 2, 0);
	give_calls(t, e, &hosts[i]);
	e->is_acked = hosts[i].una == hosts[i].written;
	for (uint32_t k = 0; k < hosts[i].event_count; k++) {
		const struct event_of *event = &hosts[i].events[k];

		if (event->resends)
			net_end_resend(e);
		else
			assert_int_equal(net_end_receive(t, e, &event->segment), 0);
		net_end_read(e, (struct net_thread){ 2, 2 }, event->segment.losses);
	}
}

static void collect(struct net_traffic *t, const struct host *hosts, const struct wishes *w)
{
	net_traffic_init(t);
	for (int i = 0; i < 2; i++) {
		struct net_machine *m = net_traffic_begin(t, i ? "b" : "a");

		m->is_tied = true;
		m->bound = i ? w->bound : 0;
		give(t, hosts, i, w);
		m->losses = hosts[i].gaps;
		net_traffic_end(t);
	}
}

struct sums {
	uint64_t segments, paired, cut, by_call, arrows;
};

/* The segment has the last byte of the call. */
static void check_arrow(const struct host *hosts, int to, const struct net_arrow *arrow)
{
	const struct host *from = &hosts[!to];
	const struct event_of *event = hosts[to].events;
	const struct call_of *c = from->calls;

	while ((uint64_t)((int64_t)c->begin + from->wrong) != arrow->send->begin ||
	       c->length != arrow->send->len)
		assert_true(++c < from->calls + from->call_count);
	while (event->ts != arrow->receipt->ts || event->resends)
		assert_true(++event < hosts[to].events + hosts[to].event_count);
	assert_true(c->last <= event->end);
	assert_true(c->last + (event->segment.len ?: 1) > event->end);
}

static void check_arrows(const struct net_traffic *t, const struct host *hosts, int to,
			 const struct net_way *in, struct sums *sums)
{
	struct net_arrow_at at = { 0 };
	struct net_arrow arrow;
	uint64_t error;

	assert_true(net_error(t, 0, 1, &error));
	for (; net_arrow_next(in, &at, error, &arrow); sums->arrows++)
		check_arrow(hosts, to, &arrow);
}

static void check_way(const struct net_traffic *t, const struct host *hosts, int to,
		      struct sums *sums)
{
	const struct net_end *e = rows_at(&t->ends, (uint32_t)to);
	const struct net_end *peer = net_end_peer(t, e);
	struct net_way in, out;
	uint32_t probe = 0;

	assert_non_null(peer);
	assert_int_equal(net_way_find(&in, t, peer, e, false), 0);
	assert_int_equal(net_way_find(&out, t, e, peer, false), 0);
	for (uint32_t k = 0; k < hosts[to].event_count; k++) {
		const struct event_of *event = &hosts[to].events[k];
		enum net_verdict verdict;
		uint64_t before;
		bool by_call;

		if (event->resends)
			continue;
		verdict = net_pair(t, &in, &out, probe++, &before, &by_call);
		sums->segments++;
		sums->paired += verdict == NET_PAIRED;
		sums->cut += verdict == NET_CUT;
		sums->by_call += by_call;
		if (verdict == NET_PAIRED &&
		    (int64_t)before - hosts[!to].wrong > (int64_t)event->sent)
			fail_msg("sent at %llu, but paired with %llu",
				 (unsigned long long)event->sent,
				 (unsigned long long)before - (unsigned long long)hosts[!to].wrong);
	}
	assert_int_equal(probe, e->count);
	check_arrows(t, hosts, to, &in, sums);
	net_way_deinit(&in);
	net_way_deinit(&out);
}

/* The lead is never less than the truth. */
static void check_lead(const struct net_traffic *t, const struct host *hosts, int to,
		       uint64_t *leads)
{
	const struct net_end *e = rows_at(&t->ends, (uint32_t)to);
	const struct net_end *peer = net_end_peer(t, e);
	struct net_lead lead = { 0 };
	struct net_way begun;

	assert_int_equal(net_way_find(&begun, t, peer, e, true), 0);
	net_lead_take(&lead, &begun);
	net_way_deinit(&begun);
	*leads += lead.count;
	if (lead.count)
		assert_true(lead.most >= hosts[to].wrong - hosts[!to].wrong);
}

static struct sums run(struct wishes w, uint64_t *leads)
{
	static struct host hosts[2];
	struct sums sums = { 0 };

	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct net_traffic t;

		if (w.bound)
			w.wrong = (int64_t)pick(2 * w.bound) - (int64_t)w.bound;
		simulate(hosts, &w);
		collect(&t, hosts, &w);
		for (int to = 0; to < 2; to++) {
			if (leads)
				check_lead(&t, hosts, to, leads);
			else
				check_way(&t, hosts, to, &sums);
		}
		net_traffic_deinit(&t);
	}
	assert_true(leads || sums.segments > 10000);
	return sums;
}

static void one_clock(void **state _unused_)
{
	struct sums s = run((struct wishes){ 0 }, NULL);

	assert_true(s.paired > s.segments * 8 / 10);
	assert_int_equal(s.cut, 0);
	s = run((struct wishes){ .has_begin = true }, NULL);
	assert_true(s.paired > s.segments * 9 / 10);
	assert_int_equal(s.cut, 0);
}

static void wrong_clocks(void **state _unused_)
{
	for (uint64_t bound = 1000; bound <= 10000000; bound *= 10) {
		struct sums s = run((struct wishes){ .bound = bound }, NULL);

		assert_true(bound > 1000000 || s.paired > s.segments / 2);
		run((struct wishes){ .bound = bound, .has_begin = true }, NULL);
	}
}

static void short_lengths(void **state _unused_)
{
	struct sums s = run((struct wishes){ .is_long = true }, NULL);

	assert_true(s.paired > s.segments / 2);
	run((struct wishes){ .is_long = true, .has_begin = true, .bound = 200000 }, NULL);
}

static void lost_events(void **state _unused_)
{
	struct sums s = run((struct wishes){ .loses = true }, NULL);

	assert_true(s.cut > 0);
	s = run((struct wishes){ .loses = true, .has_begin = true, .bound = 100000 }, NULL);
	assert_true(s.cut > 0);
}

static void sent_again(void **state _unused_)
{
	struct sums s = run((struct wishes){ .resends = true }, NULL);

	assert_true(s.cut > 0 && s.paired > 0);
	run((struct wishes){ .resends = true, .has_begin = true, .bound = 100000 }, NULL);
	run((struct wishes){ .resends = true, .loses = true, .is_long = true, .bound = 100000 },
	    NULL);
}

static void calls(void **state _unused_)
{
	struct sums s = run((struct wishes){ .has_begin = true, .calls = true }, NULL);

	assert_true(s.by_call > s.segments / 10 && s.arrows > s.segments / 20);
	s = run((struct wishes){ .has_begin = true, .calls = true, .bound = 1000 }, NULL);
	assert_true(s.by_call > 0 && s.arrows > 0);
	s = run((struct wishes){ .has_begin = true, .calls = true, .loses = true, .bound = 100000 },
		NULL);
	assert_true(s.by_call > 0);
	s = run((struct wishes){ .has_begin = true, .calls = true, .is_slow = true }, NULL);
	assert_true(s.by_call > 0 && s.arrows > 0);
	run((struct wishes){ .has_begin = true, .calls = true, .resends = true, .is_long = true },
	    NULL);
	s = run((struct wishes){ .calls = true }, NULL);
	assert_true(!s.by_call && !s.arrows);
}

/* Bytes that no call tells of. */
static void hidden_calls(void **state _unused_)
{
	run((struct wishes){ .has_begin = true, .calls = true, .hides = true }, NULL);
	for (int is_even = 0; is_even < 2; is_even++)
		run((struct wishes){ .has_begin = true,
				     .calls = true,
				     .hides = true,
				     .is_slow = true,
				     .is_even = is_even },
		    NULL);
	run((struct wishes){ .has_begin = true,
			     .calls = true,
			     .hides = true,
			     .loses = true,
			     .resends = true,
			     .bound = 100000 },
	    NULL);
}

/* Clocks are far more wrong than the bound says. */
static void clocks(void **state _unused_)
{
	uint64_t leads = 0;

	for (int64_t wrong = -1000000000; wrong <= 1000000000; wrong += 500000000) {
		run((struct wishes){ .has_begin = true, .wrong = wrong }, &leads);
		run((struct wishes){ .has_begin = true,
				     .wrong = wrong,
				     .is_long = true,
				     .loses = true,
				     .resends = true,
				     .calls = true },
		    &leads);
	}
	assert_true(leads > 1000);
	leads = 0;
	run((struct wishes){ .wrong = 1 }, &leads);
	assert_int_equal(leads, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_clock),	 cmocka_unit_test(wrong_clocks),
		cmocka_unit_test(short_lengths), cmocka_unit_test(lost_events),
		cmocka_unit_test(sent_again),	 cmocka_unit_test(calls),
		cmocka_unit_test(hidden_calls),	 cmocka_unit_test(clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
