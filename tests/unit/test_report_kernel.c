/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reports of the kernel's and applications' own work on small synthetic recordings,
 * with and without lost events. All times are short, so that histograms hold them exactly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "export/export.h"
#include "make_formats.h"
#include "make_marks.h"
#include "make_stream.h"
#include "make_usual.h"
#include "memory_file.h"
#include "report/recorded.h"
#include "report/report.h"
#include "report/slice_text.h"

enum {
	ID_QUEUE_WORK = 400,
	ID_WORK_START,
	ID_WORK_END,
	ID_TIMER_START,
	ID_TIMER_CANCEL,
	ID_TIMER_ENTRY,
	ID_TIMER_EXIT,
	ID_IDLE,
	ID_FREQUENCY,
	ID_IRQ_ENTRY,
	ID_IRQ_EXIT,
	ID_SOFTIRQ_ENTRY,
	ID_SOFTIRQ_EXIT,
	ID_IRQ_NOISE,
	ID_TIMERLAT,
	ID_CALL_ENTER,
	ID_CALL_ENTER_AGAIN,
	ID_CALL_EXIT,
	ID_BLOCK_INSERT,
	ID_BLOCK_ISSUE,
	ID_BLOCK_REQUEUE,
	ID_BLOCK_COMPLETE,
};

#define WORDS2(a, b)                                                                               \
	"\tfield:void * " a ";\toffset:8;\tsize:8;\tsigned:0;\n"                                   \
	"\tfield:void * " b ";\toffset:16;\tsize:8;\tsigned:0;\n"
#define WORD3(c) "\tfield:s64 " c ";\toffset:24;\tsize:8;\tsigned:1;\n"
#define WORD(a) "\tfield:void * " a ";\toffset:8;\tsize:8;\tsigned:0;\n"

static const struct {
	const char *system, *name;
	int id;
	const char *fields;
} formats[] = {
	{ "workqueue", "workqueue_queue_work", ID_QUEUE_WORK, WORDS2("work", "function") },
	{ "workqueue", "workqueue_execute_start", ID_WORK_START, WORDS2("work", "function") },
	{ "workqueue", "workqueue_execute_end", ID_WORK_END, WORDS2("work", "function") },
	{ "timer", "hrtimer_start", ID_TIMER_START,
	  WORDS2("hrtimer", "function") WORD3("softexpires") },
	{ "timer", "hrtimer_cancel", ID_TIMER_CANCEL, WORD("hrtimer") },
	{ "timer", "hrtimer_expire_entry", ID_TIMER_ENTRY,
	  WORDS2("hrtimer", "function") WORD3("now") },
	{ "timer", "hrtimer_expire_exit", ID_TIMER_EXIT, WORD("hrtimer") },
	{ "power", "cpu_idle", ID_IDLE, WORDS2("state", "cpu_id") },
	{ "power", "cpu_frequency", ID_FREQUENCY, WORDS2("state", "cpu_id") },
	{ "irq", "irq_handler_entry", ID_IRQ_ENTRY, WORD("irq") },
	{ "irq", "irq_handler_exit", ID_IRQ_EXIT, WORD("irq") },
	{ "irq", "softirq_entry", ID_SOFTIRQ_ENTRY, WORD("vec") },
	{ "irq", "softirq_exit", ID_SOFTIRQ_EXIT, WORD("vec") },
	/* Formats of one name: only damage. */
	{ "syscalls", "sys_enter_call", ID_CALL_ENTER, WORD("__syscall_nr") },
	{ "syscalls", "sys_enter_call", ID_CALL_ENTER_AGAIN, WORD("__syscall_nr") },
	{ "syscalls", "sys_exit_call", ID_CALL_EXIT, WORDS2("__syscall_nr", "ret") },
	{ "block", "block_rq_insert", ID_BLOCK_INSERT, WORDS2("dev", "sector") },
	{ "block", "block_rq_requeue", ID_BLOCK_REQUEUE, WORDS2("dev", "sector") },
	{ "block", "block_rq_issue", ID_BLOCK_ISSUE, WORDS2("dev", "sector") WORD3("bytes") },
	{ "block", "block_rq_complete", ID_BLOCK_COMPLETE, WORDS2("dev", "sector") WORD3("error") },
	{ "osnoise", "irq_noise", ID_IRQ_NOISE, WORDS2("start", "duration") },
	{ "ftrace", "timerlat", ID_TIMERLAT, WORDS2("context", "timer_latency") },
};

#define T(ns) (1 * S + (ns))
#define LOSS 3

/* header: NULL, or changes it. */
static void begin_with(struct maker *m, void (*header)(Traced__Capture__Header *h))
{
	maker_init(m, 8, false, 4096);
	m->header = header;
	maker_head(m);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		maker_format(m, formats[i].system, formats[i].name, formats[i].id,
			     formats[i].fields, "\"\"");
	maker_symbols(m, "ffffffff81000000 T first\nffffffff81001000 T second\n"
			 "ffffffff81002000 T third\nffffffff81003000 T end\n");
}

static void begin(struct maker *m)
{
	begin_with(m, NULL);
}

#define FIRST UINT64_C(0xffffffff81000000)
#define SECOND UINT64_C(0xffffffff81001000)

/* An event of up to three words. */
static void put(struct maker *m, uint64_t ts, uint16_t id, int32_t pid, uint64_t a, uint64_t b,
		uint64_t c)
{
	const uint64_t words[] = { a, b, c };

	maker_event(m, ts, id, pid, words, sizeof(words));
}

/* The table as CSV, without its first line; in the buffer. by: NULL, or the choice. */
static char *report_by(struct maker *m, const char *name, const char *by, struct buf *file)
{
	_cleanup_close_ int out = memory_file("", 0);
	_cleanup_error_ struct error err = ERROR_INIT;
	const struct report_options o = {
		.names = &name, .count = 1, .form = REPORT_CSV, .by = by
	};
	const struct export_options options = { .format = "report", .report = &o };
	struct export_result result = { 0 };
	char *rows;

	maker_end(m);
	if (export_run(&report_sink_ops, m->fd, out, &options, &result, &err) < 0)
		fail_msg("%s", err.message);
	export_result_deinit(&result);
	memory_file_read(out, file);
	rows = strchr(file->data, '\n');
	assert_non_null(rows);
	/* CSV's lines end with both. */
	for (char *to = ++rows, *from = rows; (*to = *from); from++)
		to += *to != '\r';
	return rows;
}

#define assert_report_by(m, name, by, expected)                                                    \
	do {                                                                                       \
		_cleanup_buf_ struct buf file = BUF_INIT;                                          \
		assert_string_equal(report_by(m, name, by, &file), expected);                      \
	} while (0)
#define assert_report(m, name, expected) assert_report_by(m, name, NULL, expected)

static void work_is_timed_from_queue_to_end(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	put(&m, T(0), ID_QUEUE_WORK, 1, 0x10, FIRST, 0);
	put(&m, T(10), ID_WORK_START, 50, 0x10, FIRST, 0);
	/* It queues itself again, and is canceled and queued: that delay begins later. */
	put(&m, T(20), ID_QUEUE_WORK, 50, 0x10, FIRST, 0);
	put(&m, T(40), ID_WORK_END, 50, 0x10, FIRST, 0);
	put(&m, T(50), ID_QUEUE_WORK, 1, 0x10, FIRST, 0);
	put(&m, T(52), ID_WORK_START, 51, 0x10, FIRST, 0);
	put(&m, T(57), ID_WORK_END, 51, 0x10, FIRST, 0);
	/* Begun before the recording, and not ended in it. */
	put(&m, T(60), ID_WORK_START, 52, 0x20, SECOND, 0);
	page_flush(&m, 0, 0);
	assert_report(&m, "workqueue",
		      "\"first\",2,35,17,5,30,30,6,2,10,10,1000000040,0,0\n"
		      "\"second\",1,0,,,,,,,,,0,0,2\n");
}

static void a_loss_cuts_work_on_any_cpu(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	put(&m, T(0), ID_QUEUE_WORK, 1, 0x10, FIRST, 0);
	put(&m, T(10), ID_WORK_START, 50, 0x10, FIRST, 0);
	put(&m, T(30), ID_WORK_END, 50, 0x10, FIRST, 0);
	/* While CPU 1 lost events: */
	put(&m, T(50), ID_QUEUE_WORK, 1, 0x10, FIRST, 0);
	put(&m, T(60), ID_WORK_START, 50, 0x10, FIRST, 0);
	put(&m, T(80), ID_WORK_END, 50, 0x10, FIRST, 0);
	/* After that: */
	put(&m, T(100), ID_QUEUE_WORK, 1, 0x10, FIRST, 0);
	put(&m, T(107), ID_WORK_START, 50, 0x10, FIRST, 0);
	put(&m, T(110), ID_WORK_END, 50, 0x10, FIRST, 0);
	put(&m, T(120), ID_WORK_END, 51, 0x20, SECOND, 0);
	page_flush(&m, 0, 0);
	page_begin(&m, T(40));
	event_number(&m, T(40), 1, 1);
	page_end(&m, 0);
	page_begin(&m, T(70));
	event_number(&m, T(70), 1, 1);
	page_flush(&m, LOSS, 1);
	assert_report(&m, "workqueue",
		      "\"first\",3,23,11,3,20,20,8,7,10,10,1000000030,2,0\n"
		      "\"second\",0,0,,,,,,,,,0,1,0\n");
}

static void timers_are_late_by_their_own_clock(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	put(&m, T(0), ID_TIMER_START, 1, 0x10, FIRST, 500);
	put(&m, T(1), ID_TIMER_START, 1, 0x20, SECOND, 600);
	put(&m, T(9), ID_TIMER_CANCEL, 0, 0x10, 0, 0);
	put(&m, T(10), ID_TIMER_ENTRY, 0, 0x10, FIRST, 503);
	/* Interrupted by another one. */
	put(&m, T(11), ID_TIMER_ENTRY, 0, 0x30, FIRST, 504);
	put(&m, T(15), ID_TIMER_EXIT, 0, 0x30, 0, 0);
	put(&m, T(20), ID_TIMER_EXIT, 0, 0x10, 0, 0);
	put(&m, T(25), ID_TIMER_CANCEL, 0, 0x20, 0, 0);
	page_flush(&m, 0, 0);
	assert_report(&m, "timer",
		      "\"first\",\"hrtimer\",2,1,0,14,7,4,10,10,3,3,3,3,0,1000000020,0,1\n"
		      "\"second\",\"hrtimer\",0,1,1,0,,,,,,,,,0,0,0,0\n");
}

static void a_loss_cuts_runs_of_timers_on_its_cpu(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	put(&m, T(0), ID_TIMER_START, 1, 0x10, FIRST, 500);
	put(&m, T(10), ID_TIMER_ENTRY, 0, 0x10, FIRST, 510);
	page_end(&m, 0);
	page_begin(&m, T(20));
	put(&m, T(20), ID_TIMER_EXIT, 0, 0x20, 0, 0);
	page_flush(&m, LOSS, 0);
	/* The other CPU lost nothing. Lateness needs all CPUs. */
	page_begin(&m, T(12));
	put(&m, T(12), ID_TIMER_ENTRY, 0, 0x40, SECOND, 511);
	put(&m, T(30), ID_TIMER_EXIT, 0, 0x40, 0, 0);
	page_flush(&m, 0, 1);
	assert_report(&m, "timer",
		      "\"second\",\"hrtimer\",1,0,0,18,18,18,18,18,,,,,0,1000000030,1,0\n"
		      "\"first\",\"hrtimer\",1,1,0,0,,,,,10,10,10,10,0,0,1,0\n"
		      "\"?\",\"hrtimer\",0,0,0,0,,,,,,,,,0,0,1,0\n");
}

#define IDLE_EXIT 0xffffffff

static void idle_states_and_frequencies(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	put(&m, T(0), ID_IDLE, 0, 2, 0, 0);
	put(&m, T(50), ID_IDLE, 0, IDLE_EXIT, 0, 0);
	put(&m, T(60), ID_FREQUENCY, 0, 1000, 1, 0);
	put(&m, T(80), ID_FREQUENCY, 0, 2000, 1, 0);
	put(&m, T(90), ID_IDLE, 0, 2, 0, 0);
	page_end(&m, 0);
	/* Both CPUs' frequency may have changed, but CPU 1 stayed idle. */
	page_begin(&m, T(100));
	put(&m, T(100), ID_FREQUENCY, 0, 1000, 1, 0);
	put(&m, T(101), ID_IDLE, 0, IDLE_EXIT, 0, 0);
	page_flush(&m, LOSS, 0);
	page_begin(&m, T(85));
	put(&m, T(85), ID_IDLE, 0, 1, 1, 0);
	put(&m, T(95), ID_IDLE, 0, IDLE_EXIT, 1, 0);
	put(&m, T(100), ID_IDLE, 0, 3, 1, 0);
	page_flush(&m, 0, 1);
	assert_report(&m, "power",
		      "0,\"idle\",2,\"\",1,50,495,50,50,50,50,1000000050,1,0\n"
		      "0,\"wake-up\",-1,\"(unknown)\",1,50,495,50,50,50,50,1000000050,0,0\n"
		      "1,\"frequency\",1000,\"\",1,20,198,20,20,20,20,1000000080,0,1\n"
		      "1,\"idle\",1,\"\",1,10,99,10,10,10,10,1000000095,0,0\n"
		      "1,\"wake-up\",-1,\"(unknown)\",1,10,99,10,10,10,10,1000000095,0,0\n"
		      "1,\"frequency\",2000,\"\",0,0,0,,,,,0,1,0\n"
		      "1,\"idle\",3,\"\",0,0,0,,,,,0,0,1\n");
}

/* The interrupt comes before the exit from idle, after it, or not before the next switch. */
static void wake_ups_have_a_source(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	put(&m, T(0), ID_IDLE, 0, 1, 0, 0);
	put(&m, T(10), ID_IRQ_ENTRY, 0, 9, 0, 0);
	put(&m, T(11), ID_IRQ_EXIT, 0, 9, 0, 0);
	/* Only the first interrupt of an idle time counts. */
	put(&m, T(12), ID_IRQ_ENTRY, 0, 8, 0, 0);
	put(&m, T(20), ID_IDLE, 0, IDLE_EXIT, 0, 0);
	put(&m, T(30), ID_IDLE, 0, 1, 0, 0);
	put(&m, T(60), ID_IDLE, 0, IDLE_EXIT, 0, 0);
	put(&m, T(61), ID_IRQ_ENTRY, 0, 9, 0, 0);
	put(&m, T(70), ID_IDLE, 0, 1, 0, 0);
	put(&m, T(75), ID_IDLE, 0, IDLE_EXIT, 0, 0);
	event_switch(&m, T(76), 0, "swapper", 0, 120, 7, "main");
	put(&m, T(77), ID_IRQ_ENTRY, 7, 9, 0, 0);
	put(&m, T(80), ID_IDLE, 0, 1, 0, 0);
	put(&m, T(90), ID_IDLE, 0, IDLE_EXIT, 0, 0);
	page_end(&m, 0);
	page_begin(&m, T(100));
	/* The interrupt that woke it at 90 is lost. */
	put(&m, T(100), ID_IRQ_ENTRY, 0, 9, 0, 0);
	put(&m, T(110), ID_IDLE, 0, 1, 0, 0);
	put(&m, T(120), ID_IDLE, 0, IDLE_EXIT, 0, 0);
	page_flush(&m, LOSS, 0);
	assert_report(&m, "power",
		      "0,\"idle\",1,\"\",5,75,625,15,10,30,30,1000000060,0,0\n"
		      "0,\"wake-up\",-1,\"9 \",2,50,417,25,20,30,30,1000000060,0,0\n"
		      "0,\"wake-up\",-1,\"(unknown)\",1,5,42,5,5,5,5,1000000075,1,1\n");
}

/* A task of 60 ns is main; another one of 30 ns has 10 ns of interrupts, 6 of them in a softirq. */
static void noise_is_what_is_not_the_main_task(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	event_switch(&m, T(0), 0, "swapper", 0, 120, 7, "main");
	event_switch(&m, T(60), 7, "main", 1, 120, 8, "other");
	put(&m, T(70), ID_SOFTIRQ_ENTRY, 8, 1, 0, 0);
	put(&m, T(72), ID_IRQ_ENTRY, 8, 9, 0, 0);
	put(&m, T(76), ID_IRQ_EXIT, 8, 9, 0, 0);
	put(&m, T(80), ID_SOFTIRQ_EXIT, 8, 1, 0, 0);
	event_switch(&m, T(90), 8, "other", 1, 120, 0, "swapper");
	put(&m, T(95), ID_IRQ_ENTRY, 0, 9, 0, 0);
	page_end(&m, 0);
	/* The 5 ns of the loss do not count. */
	page_begin(&m, T(100));
	put(&m, T(100), ID_IRQ_EXIT, 0, 9, 0, 0);
	put(&m, T(105), ID_IRQ_ENTRY, 0, 9, 0, 0);
	page_flush(&m, LOSS, 0);
	assert_report(&m, "noise", "0,100,30,700,20,,,1,4,1,6,1,20,2,1\n");
}

/*
 * With PREEMPT_RT a thread can be switched out in a softirq: that is the thread's time, and neither
 * cut nor open. The 6 ns of the interrupt in it are no time of the thread, which has 14 ns.
 */
static void a_softirq_that_a_switch_interrupts_is_its_threads(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	event_switch(&m, T(0), 0, "swapper", 0, 120, 7, "main");
	event_switch(&m, T(60), 7, "main", 1, 120, 8, "ksoftirqd/0");
	put(&m, T(62), ID_SOFTIRQ_ENTRY, 8, 1, 0, 0);
	put(&m, T(64), ID_IRQ_ENTRY, 8, 9, 0, 0);
	put(&m, T(70), ID_IRQ_EXIT, 8, 9, 0, 0);
	event_switch(&m, T(72), 8, "ksoftirqd/0", 0, 120, 7, "main");
	event_switch(&m, T(82), 7, "main", 1, 120, 8, "ksoftirqd/0");
	put(&m, T(85), ID_SOFTIRQ_EXIT, 8, 1, 0, 0);
	event_switch(&m, T(90), 8, "ksoftirqd/0", 1, 120, 0, "swapper");
	page_flush(&m, 0, 0);
	assert_report(&m, "noise", "0,90,20,778,8,,,1,6,0,0,2,14,0,0\n");
}

/* The recording ends in the task, in the softirq and in the interrupt. */
static void interrupts_of_a_task_at_the_end_are_open(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	event_switch(&m, T(0), 0, "swapper", 0, 120, 7, "main");
	put(&m, T(60), ID_SOFTIRQ_ENTRY, 7, 1, 0, 0);
	put(&m, T(64), ID_IRQ_ENTRY, 7, 9, 0, 0);
	page_flush(&m, 0, 0);
	assert_report(&m, "noise", "0,64,0,1000,0,,,0,0,0,0,0,0,0,3\n");
}

static void noise_of_the_osnoise_tracer(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	put(&m, T(0), ID_IRQ_NOISE, 8, 1, 30, 0);
	put(&m, T(50), ID_IRQ_ENTRY, 8, 9, 0, 0);
	put(&m, T(60), ID_IRQ_EXIT, 8, 9, 0, 0);
	put(&m, T(100), ID_IRQ_NOISE, 8, 1, 20, 0);
	page_flush(&m, 0, 0);
	assert_report(&m, "noise", "0,100,50,500,30,,,2,50,,,,,0,0\n");
}

static void latencies_of_each_cpu(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	put(&m, T(0), ID_TIMERLAT, 0, 0, 20, 0);
	put(&m, T(1), ID_TIMERLAT, 8, 1, 60, 0);
	put(&m, T(10), ID_TIMERLAT, 0, 0, 40, 0);
	/* Damage: no context has that number. */
	put(&m, T(11), ID_TIMERLAT, 8, 9, 80, 0);
	page_flush(&m, 0, 0);
	page_begin(&m, T(20));
	put(&m, T(20), ID_TIMERLAT, 0, 0, 30, 0);
	page_flush(&m, 0, 1);
	assert_report(&m, "timerlat",
		      "0,2,20,30,20,40,40,1000000010,1,60,60,60,60,60,1000000001,0,,,,\n"
		      "1,1,30,30,30,30,30,1000000020,0,,,,,,0,0,,,,\n");
}

/* Probes, SQL and triggers are a request, too, which names no tracer. */
static void a_request_without_a_tracer_lacks_it(void **state _unused_)
{
	Traced__Capture__Request request = TRACED__CAPTURE__REQUEST__INIT;
	Traced__Capture__Header header = TRACED__CAPTURE__HEADER__INIT;
	const struct trace_info info = { .header = &header };
	size_t *const counts[] = { &request.n_events, &request.n_probes, &request.n_sql,
				   &request.n_triggers };

	assert_false(recorded_lacks_tracer(&info, "function_graph"));
	header.request = &request;
	assert_false(recorded_lacks_tracer(&info, "function_graph"));
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		*counts[i] = 1;
		assert_true(recorded_lacks_tracer(&info, "function_graph"));
		request.tracer = (char *)"function_graph";
		assert_false(recorded_lacks_tracer(&info, "function_graph"));
		assert_true(recorded_lacks_tracer(&info, "timerlat"));
		request.tracer = (char *)"";
		*counts[i] = 0;
	}
}

static void functions_have_times_and_self_times(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	maker_graph_formats(&m);
	page_begin(&m, T(0));
	event_graph_entry(&m, T(0), 7, FIRST, 0);
	event_graph_entry(&m, T(10), 7, SECOND, 1);
	event_graph_exit(&m, T(30), 7, SECOND, 1, 0, 1010, 1028);
	event_graph_entry(&m, T(40), 7, SECOND, 1);
	event_graph_exit(&m, T(50), 7, SECOND, 1, 0, 1040, 1049);
	event_graph_exit(&m, T(60), 7, FIRST, 0, 0, 1000, 1059);
	/* Another thread's do not mix with these; this one never ends. */
	event_graph_entry(&m, T(70), 8, SECOND, 0);
	page_flush(&m, 0, 0);
	assert_report(&m, "functions",
		      "\"first\",1,59,32,59,59,59,59,1000000060,0,0\n"
		      "\"second\",2,27,27,13,9,18,18,1000000030,0,1\n");
}

static void a_loss_takes_self_times_but_not_times(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	maker_graph_formats(&m);
	page_begin(&m, T(0));
	event_graph_entry(&m, T(0), 7, FIRST, 0);
	event_graph_entry(&m, T(10), 7, SECOND, 1);
	page_end(&m, 0);
	page_begin(&m, T(60));
	event_graph_exit(&m, T(60), 7, FIRST, 0, 0, 1000, 1059);
	event_graph_exit(&m, T(90), 7, SECOND, 0, 0, 1040, 1089);
	page_flush(&m, LOSS, 0);
	assert_report(&m, "functions",
		      "\"first\",1,59,0,59,59,59,59,1000000060,1,0\n"
		      "\"second\",1,49,0,49,49,49,49,1000000090,2,0\n");
}

/* A print event of that thread. */
static void mark(struct maker *m, uint64_t ts, int32_t tid, const char *text)
{
	event_print_mark(m, ts, tid, text);
}

static void slices_know_whether_their_thread_ran(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	/* It runs before its first switch. */
	mark(&m, T(0), 7, "B|7|outer");
	mark(&m, T(10), 7, "B|7|in|ner\n");
	event_switch(&m, T(15), 7, "t", 0, 120, 9, "x");
	event_switch(&m, T(35), 9, "x", 1, 120, 7, "t");
	event_switch(&m, T(40), 7, "t", 1, 120, 9, "x");
	event_switch(&m, T(70), 9, "x", 1, 120, 7, "t");
	mark(&m, T(80), 7, "E|7");
	mark(&m, T(81), 9, "E");
	mark(&m, T(82), 7, "Entered");
	mark(&m, T(90), 7, "E");
	mark(&m, T(91), 7, "S|7|job|5");
	mark(&m, T(92), 9, "S|7|job|6");
	mark(&m, T(95), 9, "F|7|job|5");
	page_flush(&m, 0, 0);
	assert_report(&m, "marks",
		      "\"outer\",\"thread\",1,90,20,90,90,90,90,40,20,30,1000000090,0,0\n"
		      "\"in|ner\",\"thread\",1,70,70,70,70,70,70,20,20,30,1000000080,0,0\n"
		      "\"job\",\"async\",1,4,,4,4,4,4,,,,1000000095,0,1\n");
}

static void a_loss_cuts_slices(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	mark(&m, T(0), 7, "B|7|whole");
	mark(&m, T(5), 7, "E");
	mark(&m, T(6), 7, "B|7|cut");
	page_end(&m, 0);
	page_begin(&m, T(20));
	mark(&m, T(20), 7, "E");
	mark(&m, T(30), 7, "B|7|open");
	page_flush(&m, LOSS, 0);
	assert_report(&m, "marks",
		      "\"whole\",\"thread\",1,5,5,5,5,5,5,5,0,0,1000000005,0,0\n"
		      "\"cut\",\"thread\",0,0,0,,,,,0,0,0,0,1,0\n"
		      "\"open\",\"thread\",0,0,0,,,,,0,0,0,0,0,1\n");
}

static void wake(struct maker *m, uint64_t ts, int32_t waker, int32_t tid)
{
	_cleanup_buf_ struct buf data = BUF_INIT;
	char comm[16] = "task";

	buf_append(&data, comm, sizeof(comm));
	maker_u32(m, &data, (uint32_t)tid);
	maker_u32(m, &data, 120);
	maker_u32(m, &data, 0);
	maker_event(m, ts, ID_WAKING, waker, data.data, data.len);
}

/*
 * The thread makes a mark after the loss: it runs, though its switch in is lost. It is switched out
 * later, a wake-up while it runs changes nothing, and only then does the other CPU's switch show
 * that it left that one.
 */
static void a_slice_after_a_loss_is_whole(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	maker_kernel_formats(&m);
	page_begin(&m, T(0));
	event_switch(&m, T(0), 9, "x", 1, 120, 7, "t");
	page_end(&m, 0);
	page_begin(&m, T(60));
	event_switch(&m, T(60), 9, "x", 1, 120, 0, "swapper");
	page_flush(&m, LOSS, 0);
	page_begin(&m, T(2));
	event_switch(&m, T(2), 9, "x", 1, 120, 8, "y");
	page_end(&m, 0);
	page_begin(&m, T(70));
	mark(&m, T(70), 7, "B|7|whole");
	wake(&m, T(75), 8, 7);
	event_switch(&m, T(80), 7, "t", 1, 120, 8, "y");
	event_switch(&m, T(90), 8, "y", 1, 120, 7, "t");
	mark(&m, T(95), 7, "E");
	page_flush(&m, LOSS, 1);
	assert_report(&m, "marks",
		      "\"whole\",\"thread\",1,25,25,25,25,25,25,15,0,10,1000000095,0,0\n");
}

/* -e sched:sched_switch -f 'prev_pid == 7' */
static void tell_filter(Traced__Capture__Header *h)
{
	static Traced__Capture__EventSpec event = TRACED__CAPTURE__EVENT_SPEC__INIT;
	static Traced__Capture__EventSpec *const events[] = { &event };
	static Traced__Capture__Request request = TRACED__CAPTURE__REQUEST__INIT;

	event.glob = (char *)"sched:sched_switch";
	event.filter = (char *)"prev_pid == 7";
	request.events = (Traced__Capture__EventSpec **)events;
	request.n_events = 1;
	h->request = &request;
}

/* The thread's switch in is missing, but it is not lost: nothing is known of its time. */
static void a_filter_on_switches_cuts_slices(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin_with(&m, tell_filter);
	maker_kernel_formats(&m);
	page_begin(&m, T(0));
	event_switch(&m, T(0), 7, "t", 1, 120, 9, "x");
	wake(&m, T(5), 9, 7);
	mark(&m, T(10), 7, "B|7|cut");
	event_switch(&m, T(20), 7, "t", 1, 120, 9, "x");
	wake(&m, T(25), 9, 7);
	mark(&m, T(40), 7, "E");
	page_flush(&m, 0, 0);
	assert_report(&m, "marks", "\"cut\",\"thread\",0,0,0,,,,,0,0,0,0,1,0\n");
}

/* libtraced writes a mark with both times at its end: the inner one first. */
static void complete_marks_may_come_late(void **state _unused_)
{
	struct marks_maker w;
	struct maker *m = &w.m;
	int fd = memory_file("", 0);

	marks_maker_begin(&w, fd);
	marks_ring(&w, 1, 1000, 7, 7);
	w.time = 200 * S + 95;
	marks_record(&w, 'X', 0);
	marks_text(&w, MARK_NAME, "inner");
	marks_number(&w, MARK_DURATION, MARK_UINT, 70);
	w.time = 200 * S + 99;
	marks_record(&w, 'X', 0);
	marks_text(&w, MARK_NAME, "outer");
	marks_number(&w, MARK_DURATION, MARK_UINT, 90);
	/* The events are written last, but are read as they happened. */
	w.time = 200 * S + 120;
	page_begin(m, 200 * S + 5);
	event_switch(m, 200 * S + 5, 9, "x", 1, 120, 7, "t");
	event_switch(m, 200 * S + 15, 7, "t", 0, 120, 9, "x");
	event_switch(m, 200 * S + 20, 9, "x", 1, 120, 7, "t");
	event_switch(m, 200 * S + 40, 7, "t", 1, 120, 9, "x");
	event_switch(m, 200 * S + 90, 9, "x", 1, 120, 7, "t");
	event_switch(m, 200 * S + 110, 7, "t", 1, 120, 9, "x");
	page_flush(m, 0, 0);
	marks_maker_flush(&w);
	assert_report(m, "marks",
		      "\"outer\",\"thread\",1,90,20,90,90,90,90,35,5,50,200000000099,0,0\n"
		      "\"inner\",\"thread\",1,70,70,70,70,70,70,20,0,50,200000000095,0,0\n");
	maker_deinit(m);
}

static bool parsed(const char *text, struct slice_text *ret)
{
	return slice_text_parse((struct text){ text, (uint32_t)strlen(text) }, ret);
}

static void only_atrace_text_is_a_slice(void **state _unused_)
{
	static const char *const others[] = {
		"",	   "B",	       "B|",	     "B|x|name", "Entered",
		"S|7|job", "F|7|job|", "C|7|load|3", "|",	 "B|12345678901|x"
	};
	struct slice_text s;

	assert_true(parsed("S|7|a|b|9", &s));
	assert_int_equal(s.name.len, 3);
	assert_memory_equal(s.name.data, "a|b", 3);
	assert_memory_equal(s.id.data, "9", 1);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (parsed(others[i], &s))
			fail_msg("a slice: %s", others[i]);
}

/* Its completion may be lost, so the request that is queued after the loss may be another one. */
static void a_loss_cuts_requests_that_are_queued_again(void **state _unused_)
{
	for (uint16_t id = ID_BLOCK_INSERT; id <= ID_BLOCK_REQUEUE; id += 2) {
		_cleanup_(maker_deinit) struct maker m;

		begin(&m);
		page_begin(&m, T(0));
		put(&m, T(0), ID_BLOCK_ISSUE, 7, 1, 8, 512);
		page_end(&m, 0);
		page_begin(&m, T(20));
		put(&m, T(20), id, 7, 1, 8, 0);
		put(&m, T(30), ID_BLOCK_ISSUE, 7, 1, 8, 512);
		put(&m, T(35), ID_BLOCK_COMPLETE, 7, 1, 8, 0);
		page_flush(&m, LOSS, 0);
		assert_report(&m, "block",
			      "\"0,1\",\"\",1,512,0,10,10,10,10,5,5,5,5,1000000035,1,0\n");
	}
}

/* Without one it is the same request. */
static void a_requeued_request_counts_once(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	put(&m, T(0), ID_BLOCK_ISSUE, 7, 1, 8, 512);
	put(&m, T(20), ID_BLOCK_REQUEUE, 7, 1, 8, 0);
	put(&m, T(30), ID_BLOCK_ISSUE, 7, 1, 8, 512);
	put(&m, T(35), ID_BLOCK_COMPLETE, 7, 1, 8, 0);
	page_flush(&m, 0, 0);
	assert_report(&m, "block", "\"0,1\",\"\",1,512,0,10,10,10,10,5,5,5,5,1000000035,0,0\n");
}

/* Pairs that begin on one page and end on another one, which is earlier. */
static void a_clock_that_steps_back_makes_no_time(void **state _unused_)
{
	static const struct {
		const char *report, *rows;
		uint16_t begin, end;
	} pairs[] = {
		{ "workqueue", "\"first\",1,0,0,0,0,0,,,,,1000000005,0,0\n", ID_WORK_START,
		  ID_WORK_END },
		{ "irq", "\"16 \",\"irq\",1,0,0,0,0,0,1000000005,,,,,0,0\n", ID_IRQ_ENTRY,
		  ID_IRQ_EXIT },
		{ "syscalls", "\"call\",1,0,0,0,0,0,0,1000000005,0,0\n", ID_CALL_ENTER,
		  ID_CALL_EXIT },
		{ "block", "\"0,16\",\"\",1,0,1,,,,,0,0,0,0,1000000005,0,0\n", ID_BLOCK_ISSUE,
		  ID_BLOCK_COMPLETE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		_cleanup_(maker_deinit) struct maker m;

		begin(&m);
		page_begin(&m, T(50));
		put(&m, T(50), pairs[i].begin, 50, 0x10, FIRST, 0);
		page_end(&m, 0);
		page_begin(&m, T(5));
		put(&m, T(5), pairs[i].end, 50, 0x10, FIRST, 1);
		page_flush(&m, 0, 0);
		assert_report(&m, pairs[i].report, pairs[i].rows);
	}
}

/* A preempted thread was not raised, and a thread of another name is none of an interrupt. */
static void threads_of_interrupts_wait_and_run(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	maker_kernel_formats(&m);
	page_begin(&m, T(0));
	put(&m, T(0), ID_IRQ_ENTRY, 5, 16, 0, 0);
	wake(&m, T(2), 5, 60);
	put(&m, T(3), ID_IRQ_EXIT, 5, 16, 0, 0);
	event_switch(&m, T(10), 5, "usual", 0, 120, 60, "irq/16-x");
	event_switch(&m, T(30), 60, "irq/16-x", 0, 120, 5, "usual");
	event_switch(&m, T(35), 5, "usual", 0, 120, 60, "irq/16-x");
	event_switch(&m, T(40), 60, "irq/16-x", 1, 120, 5, "usual");
	page_flush(&m, 0, 0);
	assert_report(&m, "irq",
		      "\"irq/16-x\",\"thread\",2,25,12,5,20,20,1000000030,8,8,8,8,0,0\n"
		      "\"16 \",\"irq\",1,3,3,3,3,3,1000000003,,,,,0,0\n");
}

static void a_loss_cuts_threads_of_interrupts(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	maker_kernel_formats(&m);
	page_begin(&m, T(0));
	put(&m, T(0), ID_IRQ_ENTRY, 5, 16, 0, 0);
	put(&m, T(1), ID_IRQ_EXIT, 5, 16, 0, 0);
	wake(&m, T(2), 5, 60);
	page_end(&m, 0);
	page_begin(&m, T(10));
	event_switch(&m, T(10), 5, "usual", 0, 120, 60, "irq/16-x");
	event_switch(&m, T(30), 60, "irq/16-x", 1, 120, 5, "usual");
	page_flush(&m, LOSS, 0);
	assert_report(&m, "irq",
		      "\"irq/16-x\",\"thread\",1,20,20,20,20,20,1000000030,,,,,1,0\n"
		      "\"16 \",\"irq\",1,1,1,1,1,1,1000000001,,,,,0,0\n");
}

/* A kernel_stack of up to three places. */
static void put_stack(struct maker *m, uint64_t ts, int32_t pid, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t words[] = { 3, a, b, c };

	maker_event(m, ts, ID_STACK, pid, words, sizeof(words));
}

/* Only the stack of the switch out is the sleep's. */
static void sleeps_have_stacks(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	maker_kernel_formats(&m);
	maker_stack_format(&m);
	page_begin(&m, T(0));
	event_switch(&m, T(0), 0, "idle", 0, 120, 7, "t");
	put_stack(&m, T(0), 0, FIRST, FIRST, UINT64_MAX);
	put_stack(&m, T(5), 7, FIRST, FIRST, UINT64_MAX);
	event_switch(&m, T(10), 7, "t", 1, 120, 9, "x");
	put_stack(&m, T(10), 7, FIRST + 4, SECOND + 8, UINT64_MAX);
	put_stack(&m, T(11), 9, FIRST, FIRST, FIRST);
	wake(&m, T(40), 9, 7);
	put_stack(&m, T(40), 9, FIRST, FIRST, FIRST);
	event_switch(&m, T(50), 9, "x", 2, 120, 7, "t");
	put_stack(&m, T(50), 9, SECOND, UINT64_MAX, FIRST);
	wake(&m, T(52), 7, 9);
	/* A switch without a stack. */
	event_switch(&m, T(60), 7, "t", 1, 120, 9, "x");
	wake(&m, T(100), 9, 7);
	page_flush(&m, 0, 0);
	assert_report_by(&m, "offcpu", "stack",
			 "\"?\",\"S\",\"x\",1,40,40,40,40,40,1000000100,0,0\n"
			 "\"first < second\",\"S\",\"x\",1,30,30,30,30,30,1000000040,0,0\n"
			 "\"second\",\"D\",\"task\",1,2,2,2,2,2,1000000052,0,0\n");
}

static void a_loss_takes_the_stack(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	maker_kernel_formats(&m);
	maker_stack_format(&m);
	page_begin(&m, T(0));
	event_switch(&m, T(0), 0, "idle", 0, 120, 7, "t");
	event_switch(&m, T(10), 7, "t", 1, 120, 9, "x");
	page_end(&m, 0);
	page_begin(&m, T(20));
	put_stack(&m, T(20), 7, FIRST, UINT64_MAX, 0);
	wake(&m, T(40), 9, 7);
	page_flush(&m, LOSS, 0);
	assert_report_by(&m, "offcpu", "stack", "\"?\",\"?\",\"\",0,0,,,,,0,1,0\n");
}

static void an_event_counts_once(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	begin(&m);
	page_begin(&m, T(0));
	put(&m, T(0), ID_CALL_ENTER, 50, 7, 0, 0);
	put(&m, T(9), ID_CALL_EXIT, 50, 7, 0, 0);
	page_flush(&m, 0, 0);
	assert_report(&m, "syscalls", "\"call\",1,0,9,9,9,9,9,1000000009,0,0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_is_timed_from_queue_to_end),
		cmocka_unit_test(a_loss_cuts_work_on_any_cpu),
		cmocka_unit_test(timers_are_late_by_their_own_clock),
		cmocka_unit_test(a_loss_cuts_runs_of_timers_on_its_cpu),
		cmocka_unit_test(idle_states_and_frequencies),
		cmocka_unit_test(wake_ups_have_a_source),
		cmocka_unit_test(noise_is_what_is_not_the_main_task),
		cmocka_unit_test(a_softirq_that_a_switch_interrupts_is_its_threads),
		cmocka_unit_test(interrupts_of_a_task_at_the_end_are_open),
		cmocka_unit_test(noise_of_the_osnoise_tracer),
		cmocka_unit_test(latencies_of_each_cpu),
		cmocka_unit_test(a_request_without_a_tracer_lacks_it),
		cmocka_unit_test(functions_have_times_and_self_times),
		cmocka_unit_test(a_loss_takes_self_times_but_not_times),
		cmocka_unit_test(slices_know_whether_their_thread_ran),
		cmocka_unit_test(a_loss_cuts_slices),
		cmocka_unit_test(a_slice_after_a_loss_is_whole),
		cmocka_unit_test(a_filter_on_switches_cuts_slices),
		cmocka_unit_test(complete_marks_may_come_late),
		cmocka_unit_test(only_atrace_text_is_a_slice),
		cmocka_unit_test(a_loss_cuts_requests_that_are_queued_again),
		cmocka_unit_test(a_requeued_request_counts_once),
		cmocka_unit_test(a_clock_that_steps_back_makes_no_time),
		cmocka_unit_test(an_event_counts_once),
		cmocka_unit_test(threads_of_interrupts_wait_and_run),
		cmocka_unit_test(a_loss_cuts_threads_of_interrupts),
		cmocka_unit_test(sleeps_have_stacks),
		cmocka_unit_test(a_loss_takes_the_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
