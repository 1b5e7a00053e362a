/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report net, of small recordings of machines of any kind, with formats of old and new kernels.
 */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "export/export.h"
#include "make_stream.h"
#include "memory_file.h"
#include "report/net_traffic.h"
#include "report/report.h"
#include "trace/host_clock.h"

#define FIRST_TS (UINT64_C(50) * 1000000000)
#define CLIENT_FIRST 0xfffffff0U
#define SERVER_FIRST 7000U

enum { ID_PROBE = 400, ID_RESEND, ID_STATE, ID_SEND, ID_CALL };
enum { ESTABLISHED = 1, SYN_SENT, SYN_RECV, FIN_WAIT2 = 5, CLOSE = 7 };

#define FIELD(type, name, at, size)                                                                \
	"\tfield:" type name ";\toffset:" at ";\tsize:" size ";\tsigned:0;\n"
#define SOCKADDRS                                                                                  \
	FIELD("__u8 ", "saddr[28]", "8", "28")                                                     \
	FIELD("__u8 ", "daddr[28]", "36", "28")                                                    \
	FIELD("__u16 ", "sport", "64", "2")                                                        \
	FIELD("__u16 ", "dport", "66", "2")

static const char probe_old[] =
	SOCKADDRS FIELD("__u16 ", "data_len", "68", "2") FIELD("__u32 ", "snd_nxt", "72", "4")
		FIELD("__u32 ", "snd_una", "76", "4") FIELD("__u64 ", "sock_cookie", "80", "8");
static const char probe_new[] = SOCKADDRS FIELD("__u16 ", "family", "68", "2")
	FIELD("__u16 ", "data_len", "76", "2") FIELD("__u32 ", "snd_nxt", "80", "4")
		FIELD("__u32 ", "snd_una", "84", "4") FIELD("__u64 ", "sock_cookie", "88", "8");
static const char resend[] = FIELD("int ", "state", "8", "4") FIELD("__u16 ", "sport", "12", "2")
	FIELD("__u16 ", "dport", "14", "2") FIELD("__u8 ", "saddr_v6[16]", "16", "16")
		FIELD("__u8 ", "daddr_v6[16]", "32", "16") FIELD("int ", "err", "48", "4");
static const char state[] = FIELD("int ", "newstate", "8", "4") FIELD("__u16 ", "sport", "12", "2")
	FIELD("__u16 ", "dport", "14", "2") FIELD("__u8 ", "saddr_v6[16]", "16", "16")
		FIELD("__u8 ", "daddr_v6[16]", "32", "16") FIELD("int ", "oldstate", "48", "4")
			FIELD("__u16 ", "protocol", "52", "2") FIELD("u64 ", "skaddr", "56", "8");
static const char sends[] = FIELD("u64 ", "sk", "8", "8") FIELD("__u16 ", "protocol", "18", "2")
	FIELD("int ", "ret", "20", "4");
static const char call[] = FIELD("long ", "id", "8", "8");

enum address { CLIENT, SERVER, OTHER };
enum family { IP4, IP6, MAPPED };

static const uint8_t addresses[][16] = {
	[CLIENT] = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
	[SERVER] = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
	[OTHER] = { [10] = 0xff, 0xff, 10, 0, 0, 3 },
};
static const uint16_t ports[] = { [CLIENT] = 40000, [SERVER] = 80, [OTHER] = 9 };

struct recorded {
	struct maker m;
	enum family family;
	bool is_old, has_begin;
	uint64_t cookie;
};

static void put_ip(struct buf *b, const struct recorded *r, enum address which)
{
	static const uint8_t prefix[12] = { 0xfe, 0x80 };

	if (r->family == IP6)
		buf_append(b, prefix, sizeof(prefix));
	else
		buf_append(b, addresses[which], 12);
	buf_append(b, addresses[which] + 12, 4);
}

static void put_port(struct buf *b, uint16_t port)
{
	buf_putc(b, (char)(port >> 8));
	buf_putc(b, (char)port);
}

/* A struct sockaddr. */
static void put_sockaddr(struct recorded *r, struct buf *b, enum address which)
{
	const size_t end = b->len + sizeof(struct sockaddr_in6);

	maker_u16(&r->m, b, r->family == IP4 ? AF_INET : AF_INET6);
	put_port(b, ports[which]);
	if (r->family == IP4) {
		buf_append(b, addresses[which] + 12, 4);
	} else {
		maker_u32(&r->m, b, 0);
		put_ip(b, r, which);
	}
	while (b->len < end)
		buf_putc(b, '\0');
}

/* NULL, or changes what a recording asked for. */
static void (*asks)(Traced__Capture__Header *h);

static void recorded_begin(struct recorded *r, const struct machine *machine, bool is_old)
{
	*r = (struct recorded){ .is_old = is_old, .cookie = 1 };
	maker_init(&r->m, machine->word_size, machine->big_endian, 4096);
	r->m.header = asks;
	maker_head(&r->m);
	maker_format(&r->m, "tcp", "tcp_probe", ID_PROBE, is_old ? probe_old : probe_new, "\"\"");
	maker_format(&r->m, "tcp", "tcp_retransmit_skb", ID_RESEND, resend, "\"\"");
	maker_format(&r->m, "sock", "inet_sock_set_state", ID_STATE, state, "\"\"");
	maker_format(&r->m, "sock", "sock_send_length", ID_SEND, sends, "\"\"");
	maker_format(&r->m, "raw_syscalls", "sys_enter", ID_CALL, call, "\"\"");
	page_begin(&r->m, FIRST_TS);
}

static void event_probe(struct recorded *r, uint64_t at, enum address near, enum address far,
			uint16_t len, uint32_t nxt, uint32_t una)
{
	const uint32_t first = near == CLIENT ? CLIENT_FIRST : SERVER_FIRST;
	_cleanup_buf_ struct buf b = BUF_INIT;

	put_sockaddr(r, &b, near);
	put_sockaddr(r, &b, far);
	maker_u16(&r->m, &b, ports[near]);
	maker_u16(&r->m, &b, ports[far]);
	for (int i = 0; i < 4 && !r->is_old; i++)
		maker_u16(&r->m, &b, 0);
	maker_u16(&r->m, &b, len);
	maker_u16(&r->m, &b, 0);
	maker_u32(&r->m, &b, first + nxt);
	maker_u32(&r->m, &b, first + una);
	maker_u64(&r->m, &b, r->cookie + (near == SERVER));
	maker_event(&r->m, FIRST_TS + at, ID_PROBE, 1, b.data, b.len);
}

static void event_socket(struct recorded *r, uint64_t at, uint16_t id, enum address near,
			 enum address far, uint32_t first, uint32_t last)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	maker_u32(&r->m, &b, first);
	maker_u16(&r->m, &b, ports[near]);
	maker_u16(&r->m, &b, ports[far]);
	put_ip(&b, r, near);
	put_ip(&b, r, far);
	maker_u32(&r->m, &b, last);
	maker_u16(&r->m, &b, IPPROTO_TCP);
	maker_u16(&r->m, &b, 0);
	maker_u64(&r->m, &b, near);
	maker_event(&r->m, FIRST_TS + at, id, 1, b.data, b.len);
}

/* A thread's system call begins. */
static void event_call(struct recorded *r, uint64_t at, int32_t tid)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	maker_u64(&r->m, &b, 44);
	maker_event(&r->m, FIRST_TS + at, ID_CALL, tid, b.data, b.len);
}

/* It has handed over len bytes, or failed. */
static void event_sent(struct recorded *r, uint64_t at, int32_t tid, enum address near, int32_t len)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	maker_u64(&r->m, &b, near);
	maker_u16(&r->m, &b, AF_INET);
	maker_u16(&r->m, &b, IPPROTO_TCP);
	maker_u32(&r->m, &b, (uint32_t)len);
	maker_event(&r->m, FIRST_TS + at, ID_SEND, tid, b.data, b.len);
}

static void event_begin(struct recorded *r, uint64_t at, enum address near, enum address far)
{
	event_socket(r, at, ID_STATE, near, far, ESTABLISHED, near == CLIENT ? SYN_SENT : SYN_RECV);
}

/* Two questions of 10 bytes, answers of 20, an acknowledgment, and 5 bytes more. */
static void put_client(struct recorded *r)
{
	if (r->has_begin)
		event_begin(r, 1, CLIENT, SERVER);
	event_probe(r, 15, CLIENT, SERVER, 20, 10, 0);
	event_probe(r, 34, CLIENT, SERVER, 20, 20, 10);
}

static void put_server(struct recorded *r)
{
	if (r->has_begin)
		event_begin(r, 1, SERVER, CLIENT);
	event_probe(r, 10, SERVER, CLIENT, 10, 0, 0);
	event_probe(r, 30, SERVER, CLIENT, 10, 20, 0);
	event_probe(r, 90, SERVER, CLIENT, 0, 40, 20);
	event_probe(r, 95, SERVER, CLIENT, 5, 40, 40);
}

static const struct {
	uint64_t at;
	enum address near, far;
	uint16_t len;
	uint32_t nxt, una;
} received[] = {
	{ 10, SERVER, CLIENT, 10, 0, 0 },  { 15, CLIENT, SERVER, 20, 10, 0 },
	{ 30, SERVER, CLIENT, 10, 20, 0 }, { 34, CLIENT, SERVER, 20, 20, 10 },
	{ 90, SERVER, CLIENT, 0, 40, 20 }, { 95, SERVER, CLIENT, 5, 40, 40 },
};

static void put_received(struct recorded *r, size_t i)
{
	event_probe(r, received[i].at, received[i].near, received[i].far, received[i].len,
		    received[i].nxt, received[i].una);
}

static void put_both(struct recorded *client, struct recorded *server)
{
	event_begin(client, 1, CLIENT, SERVER);
	event_begin(server, 2, SERVER, CLIENT);
	for (size_t i = 0; i < ARRAY_SIZE(received); i++)
		put_received(received[i].near == CLIENT ? client : server, i);
}

static void report(int fd, const struct report_options *o, const struct host_clock *clock,
		   struct buf *ret)
{
	const struct export_options options = { .format = "report", .report = o, .host = clock };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_close_ int out = memory_file("", 0);

	if (export_run(&report_sink_ops, fd, out, &options, &result, &err) < 0)
		fail_msg("%s", err.message);
	memory_file_read(out, ret);
}

static void assert_rows(struct recorded *r, const char *by, const char *expected)
{
	static const char *const name = "net";
	const struct report_options o = {
		.names = &name, .count = 1, .form = REPORT_CSV, .by = by
	};
	_cleanup_buf_ struct buf file = BUF_INIT;

	maker_finish(&r->m);
	report(r->m.fd, &o, NULL, &file);
	assert_string_equal(strchr(buf_string(&file), '\n') + 1, expected);
	maker_deinit(&r->m);
}

#define NUMBERS_UP "4,25,3,0,44,56,61,61,50000000095,0,0,1,0\r\n"
#define NUMBERS_DOWN "2,40,2,0,4,4,5,5,50000000015,0,0,0,0\r\n"

static void machines_and_formats(void **unused _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		for (int is_old = 0; is_old < 2; is_old++) {
			struct recorded r;

			recorded_begin(&r, &machines[i], is_old);
			put_both(&r, &r);
			assert_rows(&r, NULL,
				    "\"tcp\",\"10.0.0.2:80\",\"10.0.0.1:40000\"," NUMBERS_DOWN
				    "\"tcp\",\"10.0.0.1:40000\",\"10.0.0.2:80\"," NUMBERS_UP);
			recorded_begin(&r, &machines[i], is_old);
			r.family = IP6;
			put_both(&r, &r);
			assert_rows(
				&r, NULL,
				"\"tcp\",\"[fe80::a00:2]:80\",\"[fe80::a00:1]:40000\"," NUMBERS_DOWN
				"\"tcp\",\"[fe80::a00:1]:40000\",\"[fe80::a00:2]:80\"," NUMBERS_UP);
		}
}

/* A socket of IPv6 may have a connection of IPv4. */
static void mapped(void **unused _unused_)
{
	struct recorded r;

	recorded_begin(&r, &machines[0], false);
	r.family = MAPPED;
	put_both(&r, &r);
	assert_rows(&r, "address",
		    "\"tcp\",\"10.0.0.2\",\"10.0.0.1\"," NUMBERS_DOWN
		    "\"tcp\",\"10.0.0.1\",\"10.0.0.2\"," NUMBERS_UP);
}

/* Another cookie is another socket: nobody knows which one sent. */
static void several(void **unused _unused_)
{
	struct recorded r;

	recorded_begin(&r, &machines[0], false);
	put_both(&r, &r);
	r.cookie = 7;
	event_probe(&r, 96, SERVER, CLIENT, 1, 40, 40);
	assert_rows(&r, NULL,
		    "\"tcp\",\"10.0.0.2:80\",\"10.0.0.1:40000\",2,40,0,0,,,,,0,0,0,2,0\r\n"
		    "\"tcp\",\"10.0.0.1:40000\",\"10.0.0.2:80\",5,26,0,0,,,,,0,0,0,5,0\r\n");
}

static void not_recorded(void **unused _unused_)
{
	struct recorded r;

	recorded_begin(&r, &machines[0], false);
	event_probe(&r, 10, SERVER, OTHER, 10, 0, 0);
	event_socket(&r, 20, ID_RESEND, SERVER, OTHER, ESTABLISHED, 0);
	assert_rows(&r, NULL,
		    "\"tcp\",\"10.0.0.3:9\",\"10.0.0.2:80\",1,10,0,0,,,,,0,0,0,1,0\r\n"
		    "\"tcp\",\"10.0.0.2:80\",\"10.0.0.3:9\",0,0,0,0,,,,,0,0,1,0,0\r\n");
}

/* Bytes that come after a retransmission may be old ones. One that failed sent nothing. */
static void sent_again(void **unused _unused_)
{
	struct recorded r;

	recorded_begin(&r, &machines[0], false);
	put_both(&r, &r);
	event_socket(&r, 96, ID_RESEND, SERVER, CLIENT, ESTABLISHED, 11);
	event_socket(&r, 97, ID_RESEND, CLIENT, SERVER, SYN_SENT, 0);
	event_socket(&r, 98, ID_RESEND, CLIENT, SERVER, ESTABLISHED, 0);
	event_probe(&r, 99, SERVER, CLIENT, 5, 40, 40);
	assert_rows(&r, NULL,
		    "\"tcp\",\"10.0.0.2:80\",\"10.0.0.1:40000\"," NUMBERS_DOWN
		    "\"tcp\",\"10.0.0.1:40000\",\"10.0.0.2:80\","
		    "5,30,2,0,35,15,56,56,50000000090,0,2,1,2\r\n");
}

/* A call of the client that sends. */
struct called {
	int32_t tid;
	uint64_t begin, end; /* 0: none was recorded */
	int32_t len;	     /* < 0: it failed */
};

/* put_both() with calls. ends: the client closes, and its FIN is acknowledged at 96. */
static void assert_called(const struct called *calls, size_t count, bool ends, const char *up)
{
	_cleanup_buf_ struct buf rows = BUF_INIT;
	struct recorded r;
	size_t next = 0;

	recorded_begin(&r, &machines[0], false);
	event_begin(&r, 1, CLIENT, SERVER);
	event_begin(&r, 2, SERVER, CLIENT);
	for (uint64_t ts = 3; ts < 100; ts++) {
		for (size_t i = 0; i < count; i++) {
			if (calls[i].begin == ts)
				event_call(&r, ts, calls[i].tid);
			if (calls[i].end == ts)
				event_sent(&r, ts, calls[i].tid, CLIENT, calls[i].len);
		}
		if (next < ARRAY_SIZE(received) && received[next].at == ts)
			put_received(&r, next++);
		if (ends && ts == 96)
			event_socket(&r, ts, ID_STATE, CLIENT, SERVER, FIN_WAIT2, 4);
		if (ends && ts == 97)
			event_socket(&r, ts, ID_STATE, CLIENT, SERVER, CLOSE, FIN_WAIT2);
	}
	buf_printf(&rows,
		   "\"tcp\",\"10.0.0.2:80\",\"10.0.0.1:40000\"," NUMBERS_DOWN
		   "\"tcp\",\"10.0.0.1:40000\",\"10.0.0.2:80\",%s",
		   up);
	assert_rows(&r, NULL, buf_string(&rows));
}

#define ASSERT_CALLED(ends, up, ...)                                                               \
	assert_called((const struct called[]){ __VA_ARGS__ },                                      \
		      sizeof((const struct called[]){ __VA_ARGS__ }) / sizeof(struct called),      \
		      ends, up)
#define EACH                                                                                       \
	{ 1, 5, 7, 10 }, { 1, 20, 25, 10 },                                                        \
	{                                                                                          \
		1, 80, 85, 5                                                                       \
	}
#define BY_CALLS "4,25,4,3,21,10,56,56,50000000090,0,0,0,0\r\n"

static void calls(void **unused _unused_)
{
	/* Delays of 5, 10 and 15; and of an acknowledgment 56. */
	ASSERT_CALLED(true, BY_CALLS, EACH);
	/* The last five bytes came after the client's last event, and may not be all. */
	ASSERT_CALLED(false, "4,25,4,2,33,10,61,61,50000000095,0,0,0,0\r\n", EACH);
	/* One that failed handed over nothing. The last call began at 27 or later, and at 34. */
	ASSERT_CALLED(true, "4,25,4,2,33,10,61,61,50000000095,0,0,0,0\r\n", { 1, 5, 7, 10 },
		      { 1, 20, 25, 10 }, { 1, 0, 27, -32 }, { 1, 0, 85, 5 });
	/* While calls overlap, the first bytes may be of the one that ends last. */
	ASSERT_CALLED(true, "4,25,4,2,22,15,56,56,50000000090,0,0,0,0\r\n", { 2, 6, 7, 10 },
		      { 1, 5, 8, 10 }, { 1, 80, 85, 5 });
	/* The next socket at that place in memory has calls of its own. */
	ASSERT_CALLED(true, BY_CALLS, EACH, { 1, 98, 99, 3 });
}

/* Calls that lack some bytes are not taken. */
static void calls_are_missing(void **unused _unused_)
{
	ASSERT_CALLED(true, NUMBERS_UP, { 1, 5, 7, 9 }, { 1, 20, 25, 10 }, { 1, 80, 85, 5 });
	ASSERT_CALLED(true, NUMBERS_UP, { 1, 5, 7, 10 }, { 1, 20, 25, 10 }, { 1, 80, 85, 4 });
	/* More than was sent until the client's last event. */
	ASSERT_CALLED(false, NUMBERS_UP, { 1, 5, 7, 10 }, { 1, 20, 25, 10 }, { 1, 26, 28, 5 });
}

/* The client's recording, then the server's, whose clock is wrong by so much. */
static void report_hosts(int64_t wrong, uint64_t bound, bool by_wall, bool has_begin,
			 struct buf *ret)
{
	static const char *const name = "net";
	struct net_traffic traffic;
	struct report_hosts hosts = { .traffic = &traffic };
	const struct report_options o = {
		.names = &name, .count = 1, .form = REPORT_JSON, .hosts = &hosts
	};
	struct host_clock clock = { .mult = UINT32_C(1) << 31, .shift = 31, .by_wall = by_wall };
	struct recorded r;

	net_traffic_init(&traffic);
	for (int i = 0; i < 2; i++) {
		recorded_begin(&r, &machines[0], false);
		r.has_begin = has_begin;
		if (i)
			put_server(&r);
		else
			put_client(&r);
		maker_finish(&r.m);
		clock.offset = i ? wrong : 0;
		clock.bound = i ? bound : 0;
		hosts.label = i ? "server" : "client";
		hosts.is_last = i;
		assert_int_equal(ret->len, 0);
		report(r.m.fd, &o, &clock, ret);
		maker_deinit(&r.m);
	}
	net_traffic_deinit(&traffic);
	assert_non_null(buf_string(ret));
}

static void assert_has(const struct buf *b, const char *text, bool wanted)
{
	if (!strstr(b->data, text) == wanted)
		fail_msg("%s: %s", text, b->data);
}

static void hosts(void **unused _unused_)
{
	_cleanup_buf_ struct buf tied = BUF_INIT, wrong = BUF_INIT, other = BUF_INIT,
				 wall = BUF_INIT, running = BUF_INIT;

	report_hosts(0, 0, false, true, &tied);
	assert_has(&tied, "\"from\":\"client 10.0.0.1:40000\",\"to\":\"server 10.0.0.2:80\"", true);
	assert_has(&tied, "\"events\":8,", true);
	assert_has(&tied, "\"span_ns\":94,", true);
	assert_has(&tied, "\"sum_ns\":132,", true);
	assert_has(&tied,
		   "4 segments: the clock of server is -0.004 to +0.015 us ahead of that of client",
		   true);
	assert_has(&tied, "before it was sent", false);
	/* By the begins alone. */
	report_hosts(-1000, 100, false, true, &wrong);
	assert_has(
		&wrong,
		"the clock of server is at least 0.985 us behind that of client, and their tie's "
		"bound is 0.100 us",
		true);
	report_hosts(1000, 100, false, true, &other);
	assert_has(&other, "the clock of server is at least 0.996 us ahead of that of client",
		   true);
	report_hosts(-1000, 100, true, true, &wall);
	assert_has(&wall, "is -1.004 to -0.985 us ahead", true);
	assert_has(&wall, "before it was sent", false);
	assert_has(&wall, "\"bound_ns\":null", true);
	/* A connection that had begun before. */
	report_hosts(0, 0, false, false, &running);
	assert_has(&running,
		   "5 segments, if the ties are right: the clock of server is -0.004 to +0.015 us "
		   "ahead of that of client",
		   true);
}

static Traced__Capture__EventSpec enters;

static void ask_for_enters(Traced__Capture__Header *h)
{
	static Traced__Capture__EventSpec *events = &enters;
	static Traced__Capture__Request request;

	traced__capture__request__init(&request);
	request.events = &events;
	request.n_events = 1;
	h->request = &request;
}

static void assert_is_call(const char *glob, const char *filter, bool expected)
{
	static const char *const name = "net";
	struct net_traffic traffic;
	struct report_hosts hosts = { .traffic = &traffic, .label = "" };
	const struct report_options o = { .names = &name, .count = 1, .hosts = &hosts };
	_cleanup_buf_ struct buf none = BUF_INIT;
	const struct net_end *e;
	struct recorded r;

	traced__capture__event_spec__init(&enters);
	enters.glob = (char *)glob;
	enters.filter = (char *)filter;
	net_traffic_init(&traffic);
	recorded_begin(&r, &machines[0], false);
	event_begin(&r, 1, CLIENT, SERVER);
	event_call(&r, 5, 1);
	event_sent(&r, 7, 1, CLIENT, 10);
	maker_finish(&r.m);
	report(r.m.fd, &o, NULL, &none);
	assert_int_equal(traffic.ends.count, 1);
	e = rows_at(&traffic.ends, 0);
	assert_int_equal(e->send_count, 1);
	assert_int_equal(e->sends[0].begin, FIRST_TS + 5);
	if (e->sends[0].is_call != expected)
		fail_msg("%s %s: %d", glob, filter, !expected);
	net_traffic_deinit(&traffic);
	maker_deinit(&r.m);
}

/* A call without an event may come after another one, and is not taken for that one. */
static void some_calls(void **unused _unused_)
{
	asks = ask_for_enters;
	assert_is_call("raw_syscalls:sys_enter", "", true);
	assert_is_call("raw_syscalls", "", true);
	assert_is_call("syscalls", "", true);
	assert_is_call("syscalls:sys_enter_*", "", true);
	assert_is_call("raw_syscalls:sys_enter", "id == 44", false);
	assert_is_call("syscalls:sys_enter_write", "", false);
	assert_is_call("syscalls:sys_enter_s*", "", false);
	asks = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machines_and_formats),
		cmocka_unit_test(mapped),
		cmocka_unit_test(several),
		cmocka_unit_test(not_recorded),
		cmocka_unit_test(sent_again),
		cmocka_unit_test(calls),
		cmocka_unit_test(calls_are_missing),
		cmocka_unit_test(some_calls),
		cmocka_unit_test(hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
