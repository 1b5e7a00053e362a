/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report `net`: how long segments took at most between two TCP sockets that were recorded. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/event_glob.h"
#include "base/plural.h"
#include "report/net_calls.h"
#include "report/net_pairs.h"

#define NET_ROWS_MAX (1U << 14)

/* States of TCP: include/net/tcp_states.h. */
enum {
	STATE_ESTABLISHED = 1,
	STATE_SYN_SENT,
	STATE_SYN_RECV,
	STATE_FIN_WAIT2 = 5,
	STATE_CLOSE = 7,
	STATE_NEW_SYN_RECV = 12,
};

struct net_row {
	char from[NET_NAME_BYTES], to[NET_NAME_BYTES];
	bool used, is_rest;
	uint64_t count, bytes, paired, by_call, resents, unpaired, cut;
	uint64_t bound, max_at;
	struct histogram delay;
};

struct net_socket_fields {
	struct string_at near, far;
	struct field_at near_port, far_port;
};

struct net_report {
	struct report report;
	struct net_traffic own, *traffic; /* of this recording; of all machines' */
	struct net_machine *machine;
	struct net_calls calls;
	struct rows rows;
	/* Owned; of the machine that received, by the one that sent. */
	struct net_lead *leads; /* by connections' begins */
	struct net_lead *tied;	/* by all segments, if the ties are right */
	uint64_t reversed, differing;
	struct string_at probe_near, probe_far;
	struct field_at cookie, nxt, una, len;
	struct net_socket_fields resend, state;
	struct field_at resend_state, resend_error, new_state, protocol, sk;
};

static const char *const net_by[] = { "flow", "address", NULL };

/* NULL: the record does not have so many bytes there. */
static const uint8_t *net_bytes(const struct string_at *s, const struct record *rec, uint32_t size)
{
	return s->is_dynamic || s->size < size || s->offset + size > rec->len
		       ? NULL
		       : rec->data + s->offset;
}

static void net_map_ip4(uint8_t to[16], const uint8_t ip[4])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	memcpy(to, prefix, sizeof(prefix));
	memcpy(to + sizeof(prefix), ip, 4);
}

/* A struct sockaddr_in or sockaddr_in6. False: it is neither. */
static bool net_read_sockaddr(const struct string_at *at, const struct record *rec, uint8_t ip[16],
			      uint16_t *port)
{
	const uint8_t *data = net_bytes(at, rec, sizeof(struct sockaddr_in6));
	const uint16_t family = data ? load_u16(data, at->big_endian) : 0;

	if (family == AF_INET)
		net_map_ip4(ip, data + 4);
	else if (family == AF_INET6)
		memcpy(ip, data + 8, 16);
	else
		return false;
	*port = load_u16(data + 2, true);
	return true;
}

static bool net_read_socket(const struct net_socket_fields *f, const struct record *rec,
			    struct net_tuple *ret)
{
	const uint8_t *near = net_bytes(&f->near, rec, 16), *far = net_bytes(&f->far, rec, 16);

	if (!near || !far)
		return false;
	memcpy(ret->near, near, 16);
	memcpy(ret->far, far, 16);
	ret->near_port = (uint16_t)field_at_read(&f->near_port, rec);
	ret->far_port = (uint16_t)field_at_read(&f->far_port, rec);
	return true;
}

static int net_on_probe(struct report *report, const struct trace_event *ev)
{
	struct net_report *n = container_of(report, struct net_report, report);
	struct net_tuple tuple;
	struct net_end *e;

	if (!net_read_sockaddr(&n->probe_near, &ev->rec, tuple.near, &tuple.near_port) ||
	    !net_read_sockaddr(&n->probe_far, &ev->rec, tuple.far, &tuple.far_port))
		return 0;
	e = net_end_get(n->traffic, &tuple);
	if (!e)
		return -ENOMEM;
	return net_end_receive(n->traffic, e,
			       &(struct net_segment){
				       .ts = ev->rec.ts,
				       .cookie = field_at_read(&n->cookie, &ev->rec),
				       .nxt = (uint32_t)field_at_read(&n->nxt, &ev->rec),
				       .una = (uint32_t)field_at_read(&n->una, &ev->rec),
				       .len = (uint32_t)field_at_read(&n->len, &ev->rec),
				       .losses = net_losses(report->env),
			       });
}

static int net_on_resend(struct report *report, const struct trace_event *ev)
{
	struct net_report *n = container_of(report, struct net_report, report);
	const uint64_t state = field_at_read(&n->resend_state, &ev->rec);
	struct net_tuple tuple;
	struct net_end *e;

	/* Since Linux 6.16 the event comes for a failure, too. */
	if (field_at_read(&n->resend_error, &ev->rec) ||
	    !net_read_socket(&n->resend, &ev->rec, &tuple))
		return 0;
	e = net_end_get(n->traffic, &tuple);
	if (!e)
		return -ENOMEM;
	if (state == STATE_SYN_SENT || state == STATE_SYN_RECV || state == STATE_NEW_SYN_RECV)
		e->resents++;
	else
		net_end_resend(e);
	return 0;
}

static int net_on_state(struct report *report, const struct trace_event *ev)
{
	struct net_report *n = container_of(report, struct net_report, report);
	const uint64_t to = field_at_read(&n->new_state, &ev->rec);
	const uint64_t sk = field_at_read(&n->sk, &ev->rec);
	struct net_tuple tuple;
	struct net_end *e;

	if (field_at_read(&n->protocol, &ev->rec) != IPPROTO_TCP)
		return 0;
	if (to == STATE_CLOSE)
		return net_calls_bind(&n->calls, sk, NULL);
	if (to == STATE_FIN_WAIT2 && (e = net_calls_end(&n->calls, sk)))
		e->is_acked = true;
	if (to != STATE_ESTABLISHED || !net_read_socket(&n->state, &ev->rec, &tuple))
		return 0;
	e = net_end_get(n->traffic, &tuple);
	if (!e)
		return -ENOMEM;
	net_end_begin(e, ev->rec.ts, net_losses(report->env));
	return net_calls_bind(&n->calls, sk, e);
}

static struct net_socket_fields net_socket_fields(const struct event *ev, bool big)
{
	return (struct net_socket_fields){
		.near = string_at_find(ev, "saddr_v6", big),
		.far = string_at_find(ev, "daddr_v6", big),
		.near_port = field_at_find(ev, "sport", big),
		.far_port = field_at_find(ev, "dport", big),
	};
}

static bool net_find_events(struct net_report *n, struct report_env *env)
{
	const bool big = env->big_endian;
	const struct event *ev;

	if (!report_on(env, &n->report, "tcp", "tcp_probe", net_on_probe, &ev))
		return false;
	n->probe_near = string_at_find(ev, "saddr", big);
	n->probe_far = string_at_find(ev, "daddr", big);
	n->cookie = field_at_find(ev, "sock_cookie", big);
	n->nxt = field_at_find(ev, "snd_nxt", big);
	n->una = field_at_find(ev, "snd_una", big);
	n->len = field_at_find(ev, "data_len", big);
	if (report_on(env, &n->report, "tcp", "tcp_retransmit_skb", net_on_resend, &ev)) {
		n->resend = net_socket_fields(ev, big);
		n->resend_state = field_at_find(ev, "state", big);
		n->resend_error = field_at_find(ev, "err", big);
	} else {
		n->machine->is_blind = true;
	}
	if (report_on(env, &n->report, "sock", "inet_sock_set_state", net_on_state, &ev)) {
		n->state = net_socket_fields(ev, big);
		n->new_state = field_at_find(ev, "newstate", big);
		n->protocol = field_at_find(ev, "protocol", big);
		n->sk = field_at_find(ev, "skaddr", big);
	}
	return true;
}

/* The filter of an event, or NULL. False: it has several. */
static bool net_find_filter(const Traced__Capture__Request *request, const char *system,
			    const char *event, const char **ret)
{
	size_t count = 0;

	*ret = NULL;
	for (size_t i = 0; i < request->n_events; i++) {
		if (!event_glob_has(request->events[i]->glob, system, event))
			continue;
		count++;
		if (*request->events[i]->filter)
			*ret = request->events[i]->filter;
	}
	return !*ret || count == 1;
}

/* It takes all events of a socket, or none: it compares what a socket keeps. */
static bool net_filter_is_of_sockets(const char *filter)
{
	static const char *const kept[] = { "sport", "dport",	 "family",   "saddr",	"daddr",
					    "sk",    "protocol", "saddr_v6", "daddr_v6" };
	static const char word[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

	while (filter && *filter) {
		const size_t len = strspn(filter, word);
		bool is_kept = !len || (*filter >= '0' && *filter <= '9');

		for (size_t i = 0; i < ARRAY_SIZE(kept) && !is_kept; i++)
			is_kept = strlen(kept[i]) == len && !strncmp(filter, kept[i], len);
		if (!is_kept)
			return false;
		filter += len ?: 1;
	}
	return true;
}

static bool net_filters_suffice(const Traced__Capture__Request *request)
{
	const char *probes, *resends, *states;

	return net_find_filter(request, "tcp", "tcp_probe", &probes) &&
	       net_find_filter(request, "tcp", "tcp_retransmit_skb", &resends) &&
	       net_find_filter(request, "sock", "inet_sock_set_state", &states) &&
	       net_filter_is_of_sockets(probes) && net_filter_is_of_sockets(states) &&
	       (!resends || (probes && !strcmp(resends, probes)));
}

/* Calls of some sockets would be taken for all of them. */
static bool net_sends_suffice(const struct report_env *env)
{
	const Traced__Capture__Request *request = env->info->header->request;
	const char *sends, *reads;

	return !request || (net_find_filter(request, "sock", "sock_send_length", &sends) &&
			    net_find_filter(request, "sock", "sock_recv_length", &reads) &&
			    net_filter_is_of_sockets(sends) && net_filter_is_of_sockets(reads));
}

/* It has these events, without a filter. */
static bool net_asks_for(const Traced__Capture__Request *request, const char *system,
			 const char *event)
{
	bool found = false;

	for (size_t i = 0; i < request->n_events; i++) {
		if (!event_glob_has(request->events[i]->glob, system, event))
			continue;
		if (*request->events[i]->filter)
			return false;
		found = true;
	}
	return found;
}

/* Otherwise a call without an event may come after another one's. No event has the second name. */
static bool net_enters_suffice(const struct report_env *env)
{
	const Traced__Capture__Request *request = env->info->header->request;

	return !request || net_asks_for(request, "raw_syscalls", "sys_enter") ||
	       net_asks_for(request, "syscalls", "sys_enter_");
}

/* Segments come in whatever task runs, on any CPU. What was not asked for is in no count. */
static bool net_is_partial(const struct report_env *env)
{
	const Traced__Capture__Request *request = env->info->header->request;

	if (!selection_has_all_kinds(env->selection))
		return true;
	if (!request)
		return false;
	for (size_t i = 0; i < request->n_triggers; i++)
		if (strstr(request->triggers[i], "traceo"))
			return true;
	return request->n_pids || request->n_processes || *request->cpus ||
	       !net_filters_suffice(request);
}

static void net_row_deinit(void *data)
{
	struct net_row *row = data;

	histogram_deinit(&row->delay);
}

static int net_open(struct report **ret, struct report_env *env)
{
	struct net_report *n = calloc(1, sizeof(*n));
	struct report_hosts *hosts = env->options->hosts;
	const struct host_clock *clock = env->info->moved;

	if (!n)
		return -ENOMEM;
	*ret = &n->report;
	n->report.env = env;
	net_traffic_init(&n->own);
	rows_init(&n->rows, sizeof(struct net_row), net_row_deinit);
	n->rows.max = NET_ROWS_MAX;
	n->traffic = hosts ? hosts->traffic : &n->own;
	net_calls_init(&n->calls, env, n->traffic);
	n->machine = net_traffic_begin(n->traffic, hosts ? hosts->label : "");
	if (!n->machine)
		return -E2BIG;
	n->machine->is_tied = clock && !clock->by_wall;
	n->machine->bound = clock ? clock->bound : 0;
	n->machine->is_partial = net_is_partial(env);
	n->calls.has_all_enters = net_enters_suffice(env);
	if (net_sends_suffice(env))
		net_calls_find(&n->calls);
	return net_find_events(n, env) ? 0 : -ENODATA;
}

/* The row of data to the socket; or if out, of its own. peer: NULL if it is unknown. */
static struct net_row *net_row(struct net_report *n, const struct net_end *e,
			       const struct net_end *peer, bool out)
{
	const bool with_port = !n->report.by || !strcmp(n->report.by, "flow");
	const struct net_machine *all = n->traffic->machines;
	char near[NET_NAME_BYTES], far[NET_NAME_BYTES];
	struct row_key key;
	struct net_row *row;

	net_name(near, all[e->machine].label, e->tuple.near, e->tuple.near_port, with_port);
	net_name(far, peer ? all[peer->machine].label : "", e->tuple.far, e->tuple.far_port,
		 with_port);
	key = row_key_join(row_key_of_text((struct text){ out ? near : far,
							  (uint32_t)strlen(out ? near : far) }),
			   row_key_of_text((struct text){ out ? far : near,
							  (uint32_t)strlen(out ? far : near) }));
	row = rows_get(&n->rows, key);
	if (!row || row->used)
		return row;
	row->used = true;
	row->is_rest = row == n->rows.rest || e->is_rest;
	memcpy(row->from, out ? near : far, NET_NAME_BYTES);
	memcpy(row->to, out ? far : near, NET_NAME_BYTES);
	return row;
}

/* The segment i that in->to received. */
static int net_count_segment(struct net_report *n, struct net_row *row, const struct net_way *in,
			     const struct net_way *out, uint32_t i, uint64_t error)
{
	const uint64_t ts = in->to->probes[i].ts;
	bool by_call = false;
	uint64_t before;
	int r = 0;

	switch (net_pair(n->traffic, in, out, i, &before, &by_call)) {
	case NET_PAIRED:
		row->paired++;
		row->by_call += by_call;
		net_lead_add(&n->tied[in->to->machine * NET_MACHINES_MAX + in->from->machine],
			     (int64_t)(ts - before));
		n->reversed += before > ts && before - ts > error;
		r = histogram_add_at(&row->delay, report_elapsed(before, ts), ts, &row->max_at);
		break;
	case NET_UNPAIRED:
		row->unpaired++;
		break;
	case NET_CUT:
		row->cut++;
		break;
	}
	return r;
}

/* Compares the clocks of both sockets' machines by what the first one received. */
static int net_take_lead(struct net_report *n, const struct net_end *e, const struct net_end *peer)
{
	struct net_way begun;
	int r;

	if (e->machine == peer->machine)
		return 0;
	r = net_way_find(&begun, n->traffic, peer, e, true);
	if (r == 0)
		net_lead_take(&n->leads[e->machine * NET_MACHINES_MAX + peer->machine], &begun);
	net_way_deinit(&begun);
	return r;
}

/* Counts in the row what the socket received from its peer. */
static int net_count_segments(struct net_report *n, struct net_row *row, const struct net_end *e,
			      const struct net_end *peer, uint64_t error)
{
	struct net_way in = { 0 }, out = { 0 };
	int r = net_way_find(&in, n->traffic, peer, e, false);

	if (r == 0)
		r = net_way_find(&out, n->traffic, e, peer, false);
	n->differing += in.differs;
	for (uint32_t i = 0; i < e->count && r == 0; i++)
		r = net_count_segment(n, row, &in, &out, i, error);
	net_way_deinit(&in);
	net_way_deinit(&out);
	return r < 0 ? r : net_take_lead(n, e, peer);
}

static int net_count_end(struct net_report *n, const struct net_end *e)
{
	const struct net_end *peer = net_end_peer(n->traffic, e);
	struct net_row *row;
	uint64_t error = 0;

	if (!peer && e->resents) {
		row = net_row(n, e, NULL, true);
		if (!row)
			return -ENOMEM;
		row->resents += e->resents;
	}
	if (!e->received && !(peer && peer->resents))
		return 0;
	row = net_row(n, e, peer, false);
	if (!row)
		return -ENOMEM;
	row->count += e->received;
	row->bytes += e->got;
	if (!peer) {
		row->unpaired += e->received;
		return 0;
	}
	row->resents += peer->resents;
	row->cut += e->received - e->count;
	if (!net_error(n->traffic, e->machine, peer->machine, &error))
		error = TABLE_UNKNOWN;
	row->bound = MAX(row->bound, error);
	return net_count_segments(n, row, e, peer, error);
}

static const struct column net_columns[] = {
	COLUMN("protocol", COLUMN_TEXT),
	COLUMN("from", COLUMN_TEXT, .is_wide = true),
	COLUMN("to", COLUMN_TEXT, .is_wide = true),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("bytes", COLUMN_BYTES),
	COLUMN("paired", COLUMN_COUNT),
	COLUMN("by-call", COLUMN_COUNT),
	COLUMN("delay", COLUMN_HISTOGRAM),
	COLUMN("max-at", COLUMN_AT, .adds = ADDS_AT, .of = "delay"),
	COLUMN("bound", COLUMN_TIME, .adds = ADDS_LARGEST),
	COLUMN("retransmits", COLUMN_COUNT),
	COLUMN("unpaired", COLUMN_COUNT),
	COLUMN("cut", COLUMN_COUNT),
};

static void net_put_row(struct table *t, const struct net_row *row)
{
	const char *from = row->is_rest ? "(others)" : row->from;
	const char *to = row->is_rest ? "(others)" : row->to;

	table_put_text(t, TEXT("tcp"));
	table_put_text(t, (struct text){ from, (uint32_t)strlen(from) });
	table_put_text(t, (struct text){ to, (uint32_t)strlen(to) });
	table_put_count(t, row->count);
	table_put_count(t, row->bytes);
	table_put_count(t, row->paired);
	table_put_count(t, row->by_call);
	table_put_histogram(t, &row->delay);
	table_put_count(t, row->max_at);
	table_put_count(t, row->bound);
	table_put_count(t, row->resents);
	table_put_count(t, row->unpaired);
	table_put_count(t, row->cut);
}

static double net_us(int64_t ns)
{
	return (double)ns / 1000;
}

/* How far the other machine's clock is ahead. */
static void net_note_lead(struct table *t, const struct net_lead *up, const struct net_lead *down,
			  const char *one, const char *other, const char *condition)
{
	if (up->count && down->count)
		table_note(t,
			   "%" PRIu64 " segment%s%s: the clock of %s is %+.3f to %+.3f us ahead of "
			   "that of %s",
			   up->count + down->count, plural_s(up->count + down->count), condition,
			   other, net_us(-down->most), net_us(up->most), one);
}

/* Notes how far apart two machines' clocks are, by the segments between them. */
static void net_note_clocks(const struct net_report *n, struct table *t, uint32_t a, uint32_t b)
{
	const struct net_lead *up = &n->leads[b * NET_MACHINES_MAX + a];
	const struct net_lead *down = &n->leads[a * NET_MACHINES_MAX + b];
	const char *one = n->traffic->machines[a].label, *other = n->traffic->machines[b].label;
	uint64_t error;
	const bool known = net_error(n->traffic, a, b, &error);

	net_note_lead(t, up, down, one, other, "");
	if (!up->count || !down->count)
		net_note_lead(t, &n->tied[b * NET_MACHINES_MAX + a],
			      &n->tied[a * NET_MACHINES_MAX + b], one, other,
			      ", if the ties are right");
	if (up->count && down->count && up->most < -down->most)
		table_note(t, "segments between %s and %s contradict each other", one, other);
	if (up->count && up->most < 0 && known && (uint64_t)-up->most > error)
		table_note(
			t,
			"received before it was sent: the clock of %s is at least %.3f us behind "
			"that of %s, and their tie's bound is %.3f us",
			other, net_us(-up->most), one, net_us((int64_t)error));
	if (down->count && down->most < 0 && known && (uint64_t)-down->most > error)
		table_note(t,
			   "received before it was sent: the clock of %s is at least %.3f us ahead "
			   "of that of %s, and their tie's bound is %.3f us",
			   other, net_us(-down->most), one, net_us((int64_t)error));
}

static void net_note_machine(struct table *t, const struct net_machine *m)
{
	const char *of = *m->label ? " of " : "";

	if (m->is_partial)
		table_note(t, "only some segments%s%s were recorded: none is paired", of, m->label);
	if (m->is_blind)
		table_note(t, "tcp_retransmit_skb%s%s was not recorded: bytes may have come twice",
			   of, m->label);
}

static void net_note(const struct net_report *n, struct table *t)
{
	const struct net_traffic *all = n->traffic;

	for (uint32_t a = 0; a < all->machine_count; a++) {
		net_note_machine(t, &all->machines[a]);
		for (uint32_t b = a + 1; b < all->machine_count; b++)
			net_note_clocks(n, t, a, b);
	}
	if (n->reversed)
		table_note(t, "%" PRIu64 " segment%s sent", n->reversed,
			   plural(n->reversed, " came before it was", "s came before they were"));
	if (n->differing)
		table_note(t,
			   "%" PRIu64 " way%s cut: bytes there fit the clocks at no place, or came "
			   "twice",
			   n->differing, plural(n->differing, " is", "s are"));
	if (all->is_full)
		table_note(t, "only the first %u segments are paired", NET_PROBES_MAX);
}

static int net_close(struct report *report, struct table **ret)
{
	struct net_report *n = container_of(report, struct net_report, report);
	const struct report_hosts *hosts = report->env->options->hosts;
	int r;

	n->machine->losses = report->env->losses;
	net_traffic_end(n->traffic);
	if (hosts && !hosts->is_last)
		return 0;
	n->leads = calloc((size_t)NET_MACHINES_MAX * NET_MACHINES_MAX, sizeof(*n->leads));
	n->tied = calloc((size_t)NET_MACHINES_MAX * NET_MACHINES_MAX, sizeof(*n->tied));
	r = n->leads && n->tied
		    ? table_new(ret, "net", net_columns, ARRAY_SIZE(net_columns), "bytes")
		    : -ENOMEM;
	for (uint32_t i = 0; i < rows_all(&n->traffic->ends) && r == 0; i++)
		r = net_count_end(n, rows_each(&n->traffic->ends, i));
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < rows_all(&n->rows); i++)
		net_put_row(*ret, rows_each(&n->rows, i));
	net_note(n, *ret);
	return 0;
}

static void net_free(struct report *report)
{
	struct net_report *n = container_of(report, struct net_report, report);

	net_traffic_deinit(&n->own);
	net_calls_deinit(&n->calls);
	rows_deinit(&n->rows);
	free(n->leads);
	free(n->tied);
	free(n);
}

const struct report_kind report_net = {
	.about = {
		.name = "net",
		.summary = "how long TCP segments took at most, between recorded sockets",
		.takes_hosts = true,
		.events = "tcp:tcp_probe -e tcp:tcp_retransmit_skb -e sock:*sock_se*",
		.by = net_by,
	},
	.open = net_open,
	.close = net_close,
	.free = net_free,
};
