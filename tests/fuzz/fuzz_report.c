/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Each report, of a recording with all events that reports know, whole or a part of it. Byte 0: the
 * report. Byte 1: its form, and the part. The rest are events of six bytes: kind, time since the
 * one before, CPU and loss, and three numbers.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "formats/formats.h"
#include "make_formats.h"
#include "report/report.h"

#define FIRST_ID 400
#define EVENT_BYTES 6
#define EVENTS_MAX 2000
#define CPUS 4
#define FUNCTION UINT64_C(0xffffffff81000000)

/* Flags in byte 1; the lowest bits are the form. */
enum { FORMS = 3, OF_TIME = 4, OF_CPU = 8, OF_TASK = 16, OF_EVENTS = 32, BY_OTHER = 64 };

enum { LOST_BEFORE = 0x80, CPU_MASK = CPUS - 1 };

#define BYTES(name, at, size)                                                                      \
	"\tfield:__u8 " name "[" size "];\toffset:" at ";\tsize:" size ";\tsigned:0;\n"
#define NUMBER(name, at, size) "\tfield:u64 " name ";\toffset:" at ";\tsize:" size ";\tsigned:0;\n"

#define WORD(name, at) "\tfield:u64 " name ";\toffset:" at ";\tsize:8;\tsigned:0;\n"
#define WORDS(a, b, c) WORD(a, "8") WORD(b, "16") WORD(c, "24")

static const struct {
	const char *system, *name, *fields;
} formats[] = {
	{ "sched", "sched_waking", WORDS("pid", "prio", "target_cpu") },
	{ "sched", "sched_wakeup", WORDS("pid", "prio", "target_cpu") },
	{ "sched", "sched_wakeup_new", WORDS("pid", "prio", "target_cpu") },
	{ "sched", "sched_process_exec", WORDS("pid", "old_pid", "filename") },
	{ "irq", "irq_handler_entry", WORDS("irq", "name", "other") },
	{ "irq", "irq_handler_exit", WORDS("irq", "ret", "other") },
	{ "irq", "softirq_raise", WORDS("vec", "a", "b") },
	{ "irq", "softirq_entry", WORDS("vec", "a", "b") },
	{ "irq", "softirq_exit", WORDS("vec", "a", "b") },
	{ "irq_vectors", "local_timer_entry", WORDS("vector", "a", "b") },
	{ "irq_vectors", "local_timer_exit", WORDS("vector", "a", "b") },
	{ "raw_syscalls", "sys_enter", WORDS("id", "args", "a") },
	{ "raw_syscalls", "sys_exit", WORDS("id", "ret", "a") },
	{ "block", "block_rq_insert", WORDS("dev", "sector", "bytes") },
	{ "block", "block_rq_issue", WORDS("dev", "sector", "bytes") },
	{ "block", "block_rq_requeue", WORDS("dev", "sector", "bytes") },
	{ "block", "block_rq_complete", WORDS("dev", "sector", "error") },
	{ "workqueue", "workqueue_queue_work", WORDS("work", "function", "a") },
	{ "workqueue", "workqueue_execute_start", WORDS("work", "function", "a") },
	{ "workqueue", "workqueue_execute_end", WORDS("work", "function", "a") },
	{ "timer", "hrtimer_start", WORDS("hrtimer", "function", "softexpires") },
	{ "timer", "hrtimer_cancel", WORDS("hrtimer", "a", "b") },
	{ "timer", "hrtimer_expire_entry", WORDS("hrtimer", "function", "now") },
	{ "timer", "hrtimer_expire_exit", WORDS("hrtimer", "a", "b") },
	{ "timer", "timer_start", WORDS("timer", "function", "expires") },
	{ "timer", "timer_expire_entry", WORDS("timer", "function", "now") },
	{ "timer", "timer_expire_exit", WORDS("timer", "a", "b") },
	{ "power", "cpu_idle", WORDS("state", "cpu_id", "a") },
	{ "power", "cpu_frequency", WORDS("state", "cpu_id", "a") },
	{ "osnoise", "irq_noise", WORDS("start", "duration", "vector") },
	{ "osnoise", "thread_noise", WORDS("start", "duration", "pid") },
};

/* Events of sockets, of struct put_socket. */
enum { ID_PROBE = FIRST_ID + 100, ID_RESEND, ID_STATE, ID_SEND };
#define SOCKET                                                                                     \
	BYTES("saddr_v6", "16", "16")                                                              \
	BYTES("daddr_v6", "44", "16")                                                              \
	NUMBER("sport", "10", "2")                                                                 \
	NUMBER("dport", "38", "2")

static const struct {
	const char *system, *name, *fields;
} sockets[] = {
	{ "tcp", "tcp_probe",
	  BYTES("saddr", "8", "28") BYTES("daddr", "36", "28") NUMBER("data_len", "64", "2")
		  NUMBER("snd_nxt", "68", "4") NUMBER("snd_una", "72", "4")
			  NUMBER("sock_cookie", "76", "4") },
	{ "tcp", "tcp_retransmit_skb", SOCKET NUMBER("state", "64", "2") },
	{ "sock", "inet_sock_set_state",
	  SOCKET NUMBER("newstate", "72", "4") NUMBER("protocol", "76", "4")
		  NUMBER("skaddr", "16", "4") },
	{ "sock", "sock_send_length",
	  NUMBER("sk", "16", "4") NUMBER("ret", "64", "4") NUMBER("protocol", "76", "4") },
};

/* Behind the formats: events that every recording of the tests has, and calls of functions. */
enum {
	KIND_SWITCH = ARRAY_SIZE(formats),
	KIND_BEGIN,
	KIND_END,
	KIND_CALL,
	KIND_RETURN,
	KIND_SOCKET,
	KINDS
};

static void put_formats(struct maker *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		maker_format(m, formats[i].system, formats[i].name, FIRST_ID + (int)i,
			     formats[i].fields, "\"\"");
	for (size_t i = 0; i < ARRAY_SIZE(sockets); i++)
		maker_format(m, sockets[i].system, sockets[i].name, ID_PROBE + (int)i,
			     sockets[i].fields, "\"\"");
	maker_graph_formats(m);
	maker_symbols(m, "ffffffff81000000 T first\nffffffff81000002 T second\n"
			 "ffffffff81000100 T end\n");
}

/* One of two sockets, or of a few more; what it sent grows with time. */
static void put_socket(struct maker *m, uint64_t ts, const uint8_t *data)
{
	struct {
		uint8_t near[28], far[28];
		uint16_t len, unused;
		uint32_t nxt, una, cookie;
	} s = { .near = { AF_INET6 }, .far = { AF_INET6 } };
	const uint16_t id = (uint16_t)(ID_PROBE + (data[3] >> 4 & 3));
	const bool is_other = data[3] & 1;

	s.near[8 + is_other] = s.far[8 + !is_other] = 1;
	s.far[10] = s.near[10] = data[3] >> 6;
	s.len = (uint16_t)(data[4] << (data[3] & 6));
	s.nxt = (uint32_t)ts * 16 + data[4];
	s.una = s.nxt - data[5];
	s.cookie = data[3] & 8 ? IPPROTO_TCP : 0;
	/* Half of these are ESTABLISHED. */
	if (id == ID_STATE)
		s.una = data[5] & 1 ?: data[5] / 16;
	maker_event(m, ts, id, data[0] / 64 + 1, &s, sizeof(s));
}

static void put_event(struct maker *m, uint64_t ts, const uint8_t *data)
{
	const unsigned kind = data[0] % KINDS;
	const int32_t pid = data[0] / 64 + 1;
	const uint64_t words[] = { data[3], data[4], data[5] };
	const char text[] = { 'B', '|', '1', '|', (char)('a' + data[3] % 4), '\0' };

	if (kind == KIND_SWITCH)
		event_switch(m, ts, data[3], "a", data[4], 120, data[5], "b");
	else if (kind == KIND_BEGIN)
		event_print_mark(m, ts, pid, text);
	else if (kind == KIND_END)
		event_print_mark(m, ts, pid, "E");
	else if (kind == KIND_CALL)
		event_graph_entry(m, ts, pid, FUNCTION + data[3], data[4]);
	else if (kind == KIND_RETURN)
		event_graph_exit(m, ts, pid, FUNCTION + data[3], data[4], 0, ts - data[5], ts);
	else if (kind == KIND_SOCKET)
		put_socket(m, ts, data);
	else
		maker_event(m, ts, (uint16_t)(FIRST_ID + kind), pid, words, sizeof(words));
}

static void put_events(struct maker *m, const uint8_t *data, size_t size)
{
	uint64_t ts = UINT64_C(100000000000);
	uint32_t cpu = 0, room = m->subbuf_size - 200;
	bool begun = false;

	for (size_t i = 0; i < EVENTS_MAX && size >= EVENT_BYTES; i++) {
		const bool lost = data[2] & LOST_BEFORE;

		ts += data[1];
		if (begun && (lost || (data[2] & CPU_MASK) != cpu || m->page.len > room)) {
			page_flush(m, lost ? UINT64_MAX : 0, cpu);
			begun = false;
		}
		cpu = data[2] & CPU_MASK;
		if (!begun)
			page_begin(m, ts);
		begun = true;
		put_event(m, ts, data);
		data += EVENT_BYTES;
		size -= EVENT_BYTES;
	}
	if (begun)
		page_flush(m, 0, cpu);
}

static void report(int fd, const struct report_about *about, uint8_t flags)
{
	static const char *const events[] = { "sched", "irq:softirq*" };
	static int out = -EBADF;
	static int32_t tid = 1;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_export_result_ struct export_result result;
	_cleanup_(cpu_set_deinit) struct cpu_set cpus = { 0 };
	struct report_options o = { .names = &about->name, .count = 1, .form = flags % FORMS };
	struct export_options options = { .format = "report", .report = &o };
	struct export_selection *part = &options.selection;

	if (out < 0)
		out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	o.task = about->needs_task ? "1" : NULL;
	o.by = flags & BY_OTHER && about->by && about->by[0] ? about->by[1] : NULL;
	if (flags & OF_TIME) {
		part->from = (struct moment){ .kind = MOMENT_AFTER_BEGIN, .ns = 100 };
		part->to = (struct moment){ .kind = MOMENT_MARK, .mark = "a" };
	}
	if (flags & OF_CPU && parse_cpu_list("0,2", &cpus, NULL) == 0)
		part->cpus = &cpus;
	if (flags & OF_TASK) {
		part->threads = &tid;
		part->thread_count = 1;
	}
	if (flags & OF_EVENTS) {
		part->events = events;
		part->event_count = ARRAY_SIZE(events);
	}
	if (export_run(&report_sink_ops, fd, out, &options, &result, &err) < 0 && !err.message)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct report_about *all;
	struct maker m;
	size_t count;

	if (size < 2)
		return 0;
	all = report_all(&count);
	maker_begin(&m, 1024);
	put_formats(&m);
	put_events(&m, data + 2, size - 2);
	maker_end(&m);
	report(m.fd, &all[data[0] % count], data[1]);
	maker_deinit(&m);
	return 0;
}
