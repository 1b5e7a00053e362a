/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditions of triggers: what people type, and when events meet them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "export/export.h"
#include "make_formats.h"
#include "make_marks.h"
#include "make_stream.h"
#include "make_usual.h"
#include "memory_file.h"
#include "proto/control.pb-c.h"
#include "report/watch.h"

static void a_condition_has_its_parts(void **state _unused_)
{
	struct watch_condition c;

	assert_int_equal(
		watch_condition_parse(" sched.delay>5ms  for comm=\"a b*\",tid=7,cpu=3", &c, NULL),
		0);
	assert_int_equal(c.kind, WATCH_DELAY);
	assert_int_equal(c.above, 5 * MS);
	assert_string_equal(c.comm, "a b*");
	assert_int_equal(c.tid, 7);
	assert_int_equal(c.cpu, 3);
	watch_condition_deinit(&c);

	assert_int_equal(watch_condition_parse("softirq.max > 1.5s for name=NET_*", &c, NULL), 0);
	assert_int_equal(c.kind, WATCH_SOFTIRQ);
	assert_int_equal(c.above, S * 3 / 2);
	assert_string_equal(c.name, "NET_*");
	assert_int_equal(c.cpu, -1);
	watch_condition_deinit(&c);

	assert_int_equal(watch_condition_parse("mark \"a > b\" > 250us", &c, NULL), 0);
	assert_int_equal(c.kind, WATCH_MARK);
	assert_string_equal(c.name, "a > b");
	assert_int_equal(c.above, 250000);
	watch_condition_deinit(&c);

	assert_int_equal(watch_condition_parse("event a:b if comm == \"x, y\" && z > 1", &c, NULL),
			 0);
	assert_int_equal(c.kind, WATCH_EVENT);
	assert_string_equal(c.system, "a");
	assert_string_equal(c.event, "b");
	assert_string_equal(c.filter, "comm == \"x, y\" && z > 1");
	watch_condition_deinit(&c);

	assert_int_equal(watch_condition_parse("lost > 12", &c, NULL), 0);
	assert_int_equal(c.kind, WATCH_LOST);
	assert_int_equal(c.above, 12);
	watch_condition_deinit(&c);
}

/* The caret stands under `at`. */
static void assert_refused(const char *text, const char *message, size_t at)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf expected = BUF_INIT;
	struct watch_condition c;

	buf_printf(&expected, "%s\n%s\n%*s^", message, text, (int)at, "");
	assert_int_equal(watch_condition_parse(text, &c, &err), -EINVAL);
	assert_string_equal(err.message, buf_string(&expected));
}

static void an_error_shows_its_place(void **state _unused_)
{
	struct watch_condition c;
	char text[WATCH_TEXT_MAX + 2];

	assert_refused("", "the condition is empty", 0);
	assert_refused("sched.dely > 5ms", "nothing of this name can be watched", 0);
	assert_refused("sched.delayed > 5ms", "nothing of this name can be watched", 0);
	assert_refused("sched.delay < 5ms", "a > is missing", 12);
	assert_refused("sched.delay >= 5ms", "a > is missing", 12);
	assert_refused("sched.delay > ", "a time is missing", 14);
	assert_refused("sched.delay > 5", "the time has no unit", 14);
	assert_refused("sched.delay > 5 ms", "the time has no unit", 14);
	assert_refused("sched.delay > soon", "this is not a time", 14);
	assert_refused("sched.delay > 0ms", "this is not a time", 14);
	assert_refused("sched.delay > 5ms comm=x", "the condition ends here", 18);
	assert_refused("sched.delay > 5ms for", "this is not a key", 21);
	assert_refused("sched.delay > 5ms for name=x", "this is not a key", 22);
	assert_refused("irq.max > 5ms for comm=x", "this is not a key", 18);
	assert_refused("mark x > 5ms for cpu=1", "this is not a key", 17);
	assert_refused("sched.delay > 5ms for tid=0", "the number is too small", 26);
	assert_refused("sched.delay > 5ms for cpu=x", "a number is missing", 26);
	assert_refused("sched.delay > 5ms for cpu=99999999999", "the number is too large", 26);
	assert_refused("sched.delay > 5ms for comm=", "a name is missing", 27);
	assert_refused("sched.delay > 5ms for comm=a cpu=1", "a comma is missing", 29);
	assert_refused("mark > 5ms", "the name of a slice is missing", 5);
	assert_refused("mark \"x > 5ms", "the quote does not end", 5);
	assert_refused("mark \"\" > 5ms", "the name of a slice is missing", 5);
	assert_refused("event sched", "an event is missing", 6);
	assert_refused("event sched:*", "an event is missing", 6);
	assert_refused("event a:b:c", "an event is missing", 6);
	assert_refused("event a:b when x", "the condition ends here", 10);
	assert_refused("event a:b if ", "a filter is missing", 13);
	assert_refused("lost > many", "a number of events is missing", 7);
	assert_refused("lost > 1 for cpu=1", "the condition ends here", 9);
	assert_int_equal(watch_condition_parse("lost > 1\n", &c, NULL), -EINVAL);
	memset(text, ' ', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(watch_condition_parse(text, &c, NULL), -EINVAL);
}

enum { ID_IRQ_ENTRY = 400, ID_IRQ_EXIT, ID_SOFTIRQ_ENTRY, ID_SOFTIRQ_EXIT };

#define NUMBER(name, at) "\tfield:int " name ";\toffset:" at ";\tsize:4;\tsigned:1;\n"

/* Adds the events that conditions need. */
static void begin(struct maker *m)
{
	maker_kernel_formats(m);
	maker_format(m, "irq", "irq_handler_entry", ID_IRQ_ENTRY,
		     NUMBER("irq", "8") "\tfield:char name[16];\toffset:12;\tsize:16;\tsigned:0;\n",
		     "\"irq=%d\", REC->irq");
	maker_format(m, "irq", "irq_handler_exit", ID_IRQ_EXIT,
		     NUMBER("irq", "8") NUMBER("ret", "12"), "\"irq=%d\", REC->irq");
	maker_format(m, "irq", "softirq_entry", ID_SOFTIRQ_ENTRY, NUMBER("vec", "8"), "\"\"");
	maker_format(m, "irq", "softirq_exit", ID_SOFTIRQ_EXIT, NUMBER("vec", "8"), "\"\"");
}

#define T(ns) (1 * S + (ns))
#define LOSS 3

static void put_waking(struct maker *m, uint64_t ts, int32_t by, int32_t tid)
{
	struct {
		char comm[16];
		int32_t pid, prio, cpu;
	} data = { "?", tid, 120, 0 };

	maker_event(m, ts, ID_WAKING, by, &data, sizeof(data));
}

static void put_irq(struct maker *m, uint64_t ts, uint16_t id, int32_t irq, const char *name)
{
	struct {
		int32_t irq;
		char name[16];
	} data = { .irq = irq };

	memcpy(data.name, name, strlen(name));
	maker_event(m, ts, id, 9, &data, sizeof(data));
}

/* Whoever takes the recording in slices; NULL: it is whole. */
static void run(struct maker *m, const struct export_follow *follow, const char *const *conditions,
		size_t count, struct buf *out)
{
	_cleanup_close_ int fd = memory_file("", 0);
	_cleanup_error_ struct error err = ERROR_INIT;
	const struct export_watch watch = { conditions, count };
	const struct export_options o = { .format = "watch", .watch = &watch, .follow = follow };
	struct export_result result = { 0 };

	if (export_run(&watch_sink_ops, m->fd, fd, &o, &result, &err) < 0)
		fail_msg("%s", err.message);
	export_result_deinit(&result);
	memory_file_read(fd, out);
}

/* "CONDITION TIME VALUE CPU TID WHAT" for each firing; times from 1 s on. */
static void put_frames(const struct buf *frames, struct buf *text)
{
	size_t at = 0;

	while (at < frames->len) {
		uint32_t len = load_u32((const uint8_t *)frames->data + at, false);
		Traced__Control__Firing *f;

		assert_true(len <= WATCH_FRAME_MAX && at + 4 + len <= frames->len);
		f = traced__control__firing__unpack(NULL, len,
						    (const uint8_t *)frames->data + at + 4);
		assert_non_null(f);
		buf_printf(text, "%u %llu %llu %d %d %.*s", f->condition,
			   (unsigned long long)(f->at_ns - S), (unsigned long long)f->value, f->cpu,
			   f->tid, (int)f->what.len, f->what.data ? (char *)f->what.data : "");
		if (f->more)
			buf_printf(text, " and %llu more", (unsigned long long)f->more);
		buf_putc(text, '\n');
		traced__control__firing__free_unpacked(f, NULL);
		at += 4 + len;
	}
}

#define assert_fired(m, expected, ...)                                                             \
	do {                                                                                       \
		const char *const conditions[] = { __VA_ARGS__ };                                  \
		_cleanup_buf_ struct buf frames = BUF_INIT, text = BUF_INIT;                       \
                                                                                                   \
		run(m, NULL, conditions, ARRAY_SIZE(conditions), &frames);                         \
		put_frames(&frames, &text);                                                        \
		assert_string_equal(buf_string(&text), expected);                                  \
	} while (0)

#define US UINT64_C(1000)

static void put_tasks(struct maker *m)
{
	const struct maker_task tasks[] = { { 7, 7, "pulse-1", 0, false },
					    { 8, 8, "other", 0, false } };

	maker_tasks(m, 0, 0, tasks, ARRAY_SIZE(tasks));
}

static void a_delay_fires_when_the_task_runs(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	maker_begin(&m, 4096);
	begin(&m);
	put_tasks(&m);
	page_begin(&m, T(0));
	event_switch(&m, T(0), 0, "swapper", 0, 120, 9, "x");
	put_waking(&m, T(1 * US), 9, 7);
	put_waking(&m, T(2 * US), 9, 8);
	/* A value that equals the limit is not above it. */
	event_switch(&m, T(11 * US), 9, "x", 1, 120, 7, "pulse-1");
	event_switch(&m, T(13 * US), 7, "pulse-1", 1, 120, 8, "other");
	/* A preempted task waits, too. */
	event_switch(&m, T(14 * US), 8, "other", 0, 120, 9, "x");
	event_switch(&m, T(30 * US), 9, "x", 1, 120, 8, "other");
	/* This one waits at the end of the recording. */
	put_waking(&m, T(31 * US), 8, 7);
	event_switch(&m, T(90 * US), 8, "other", 1, 120, 9, "x");
	maker_finish(&m);
	assert_fired(&m,
		     "0 13000 11000 0 8 other\n"
		     "3 13000 11000 0 8 other\n"
		     "0 30000 16000 0 8 other\n"
		     "3 30000 16000 0 8 other\n",
		     "sched.delay > 10us", "sched.delay > 10us for comm=pulse*",
		     "sched.delay > 10us for cpu=1", "sched.delay > 10us for tid=8,comm=oth?r",
		     "sched.delay > 16us");
}

static void a_loss_makes_no_delay(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	maker_begin(&m, 4096);
	begin(&m);
	put_tasks(&m);
	page_begin(&m, T(0));
	event_switch(&m, T(0), 0, "swapper", 0, 120, 9, "x");
	put_waking(&m, T(1 * US), 9, 7);
	page_end(&m, 0);
	/* The task may have run and slept meanwhile. */
	page_begin(&m, T(50 * US));
	event_switch(&m, T(50 * US), 9, "x", 1, 120, 7, "pulse-1");
	put_waking(&m, T(51 * US), 7, 8);
	event_switch(&m, T(71 * US), 7, "pulse-1", 1, 120, 8, "other");
	page_flush(&m, LOSS, 0);
	maker_end(&m);
	assert_fired(&m, "0 71000 20000 0 8 other\n", "sched.delay > 10us");
}

static void handlers_fire(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	maker_begin(&m, 4096);
	begin(&m);
	page_begin(&m, T(0));
	put_irq(&m, T(0), ID_IRQ_ENTRY, 30, "eth0");
	put_irq(&m, T(5 * US), ID_IRQ_EXIT, 30, "");
	put_irq(&m, T(6 * US), ID_IRQ_ENTRY, 31, "ahci");
	put_irq(&m, T(9 * US), ID_IRQ_EXIT, 31, "");
	put_irq(&m, T(10 * US), ID_SOFTIRQ_ENTRY, 3, "");
	put_irq(&m, T(20 * US), ID_SOFTIRQ_EXIT, 3, "");
	put_irq(&m, T(21 * US), ID_IRQ_ENTRY, 30, "eth0");
	page_end(&m, 0);
	page_begin(&m, T(50 * US));
	put_irq(&m, T(50 * US), ID_IRQ_EXIT, 30, "");
	page_flush(&m, LOSS, 0);
	maker_end(&m);
	assert_fired(&m,
		     "0 5000 5000 0 9 eth0\n"
		     "1 5000 5000 0 9 eth0\n"
		     "0 9000 3000 0 9 ahci\n"
		     "3 20000 10000 0 9 NET_RX\n",
		     "irq.max > 2us", "irq.max > 2us for name=eth*", "irq.max > 2us for cpu=1",
		     "softirq.max > 2us for name=NET_RX", "softirq.max > 2us for name=TIMER");
}

static void events_fire(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	maker_begin(&m, 4096);
	begin(&m);
	page_begin(&m, T(0));
	event_switch(&m, T(0), 0, "swapper", 0, 120, 9, "x");
	event_switch(&m, T(1 * US), 9, "x", 1, 120, 0, "swapper");
	maker_finish(&m);
	assert_fired(&m,
		     "0 0 0 0 0 sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 "
		     "prev_state=R ==> next_comm=x next_pid=9 next_prio=120\n"
		     "0 1000 0 0 9 sched_switch: prev_comm=x prev_pid=9 prev_prio=120 "
		     "prev_state=S ==> next_comm=swapper next_pid=0 next_prio=120\n",
		     "event sched:sched_switch if next_pid == 9");
}

static void slices_fire(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	maker_begin(&m, 4096);
	begin(&m);
	put_tasks(&m);
	page_begin(&m, T(0));
	event_print_mark(&m, T(0), 7, "B|7|frame\n");
	event_print_mark(&m, T(1 * US), 7, "B|7|frames\n");
	event_print_mark(&m, T(2 * US), 8, "B|8|frame\n");
	event_print_mark(&m, T(20 * US), 7, "E|7\n");
	event_print_mark(&m, T(21 * US), 8, "E\n");
	event_print_mark(&m, T(30 * US), 7, "E\n");
	event_print_mark(&m, T(31 * US), 7, "E\n");
	event_print_mark(&m, T(32 * US), 7, "B|7|frame\n");
	event_print_mark(&m, T(33 * US), 7, "E\n");
	event_print_mark(&m, T(34 * US), 7, "S|7|frame|1\n");
	event_print_mark(&m, T(35 * US), 7, "S|7|frame|2\n");
	event_print_mark(&m, T(36 * US), 8, "F|7|frame|2\n");
	event_print_mark(&m, T(55 * US), 8, "F|7|frame|1\n");
	event_print_mark(&m, T(56 * US), 7, "B|7|frame\n");
	page_end(&m, 0);
	/* Its end, and the begin of another one, may be lost. */
	page_begin(&m, T(90 * US));
	event_print_mark(&m, T(90 * US), 7, "E\n");
	page_flush(&m, LOSS, 0);
	maker_end(&m);
	assert_fired(&m,
		     "0 21000 19000 -1 8 frame\n"
		     "0 30000 30000 -1 7 frame\n"
		     "1 30000 30000 -1 7 frame\n"
		     "0 55000 21000 -1 7 frame\n"
		     "1 55000 21000 -1 7 frame\n",
		     "mark \"frame\" > 15us", "mark frame > 15us for comm=pulse*",
		     "mark fram > 15us");
}

static void marks_of_libtraced_fire(void **state _unused_)
{
	struct marks_maker w;
	struct maker *m = &w.m;

	marks_maker_begin(&w, memory_file("", 0));
	marks_ring(&w, 1, 1000, 7, 7);
	w.time = 200 * S + 95 * US;
	marks_record(&w, 'X', 0);
	marks_text(&w, MARK_NAME, "frame");
	marks_number(&w, MARK_DURATION, MARK_UINT, 70 * US);
	w.time = 200 * S + 99 * US;
	marks_record(&w, 'B', 0);
	marks_text(&w, MARK_NAME, "frame");
	w.time = 200 * S + 199 * US;
	marks_record(&w, 'E', 0);
	w.time = 200 * S + 299 * US;
	page_begin(m, 200 * S + 5);
	event_switch(m, 200 * S + 5, 9, "x", 1, 120, 7, "t");
	page_flush(m, 0, 0);
	marks_maker_flush(&w);
	maker_end(m);
	assert_fired(m,
		     "0 199000095000 70000 -1 7 frame\n"
		     "0 199000199000 100000 -1 7 frame\n"
		     "1 199000199000 100000 -1 7 frame\n",
		     "mark frame > 16us", "mark frame > 80us");
	maker_deinit(m);
}

/* However many there are, the reader is not flooded. */
static void a_burst_is_counted(void **state _unused_)
{
	_cleanup_buf_ struct buf frames = BUF_INIT, text = BUF_INIT;
	_cleanup_(maker_deinit) struct maker m;
	const char *const conditions[] = { "event sched:sched_switch" };
	size_t lines = 0;

	maker_begin(&m, 1 << 20);
	begin(&m);
	page_begin(&m, T(0));
	for (unsigned i = 0; i < 3 * WATCH_BURST; i++)
		event_switch(&m, T(i), 0, "swapper", 0, 120, 9, "x");
	maker_finish(&m);
	run(&m, NULL, conditions, 1, &frames);
	put_frames(&frames, &text);
	for (const char *p = buf_string(&text); (p = strchr(p, '\n')); p++)
		lines++;
	assert_int_equal(lines, WATCH_BURST + 1);
	assert_non_null(strstr(text.data, "0 191 0 -1 0  and 128 more\n"));
}

#define SHORT_TASKS 100000
#define SHORT_PER_FLUSH 1000
#define SHORT_NS (100 * US)

/* Tasks that begin, are renamed, run, and end. */
static void put_short_tasks(struct maker *m, unsigned first)
{
	for (unsigned i = first; i < first + SHORT_PER_FLUSH; i++) {
		uint64_t ts = T(SHORT_NS * (i + 1));
		int32_t tid = 1000 + (int32_t)i;

		if (i == first)
			page_begin(m, ts);
		event_newtask(m, ts, 9, tid, "x", 0);
		event_rename(m, ts + 1, tid, "x", "short");
		event_free(m, ts + 10, tid, "short");
	}
	page_end(m, 0);
	maker_flush(m, 0, BUFFER_TASKS, 0);
	for (unsigned i = first; i < first + SHORT_PER_FLUSH; i++) {
		uint64_t ts = T(SHORT_NS * (i + 1));
		int32_t tid = 1000 + (int32_t)i;

		if (i == first)
			page_begin(m, ts);
		put_waking(m, ts + 2, 9, tid);
		event_switch(m, ts + 3, 9, "x", 1, 120, tid, "short");
		event_switch(m, ts + 4, tid, "short", 0x10, 120, 9, "x");
	}
	page_flush(m, 0, 0);
	assert_int_equal(stream_write(&m->writer, CHUNK_FLUSH, "", 0), 0);
}

/* While it is recorded, the same fires; and memory does not grow with the tasks that have ended. */
static void assert_watched_while_it_grows(const char *condition, const char *expected)
{
	_cleanup_buf_ struct buf frames = BUF_INIT, text = BUF_INIT;
	_cleanup_(maker_deinit) struct maker m;
	struct export_follow follow = { .wait = give_slice };
	struct feed feed = { .to = memory_file("", 0), .seed = 1, .slice_max = 1 << 20 };
	int from;

	maker_begin(&m, 1 << 20);
	begin(&m);
	maker_free_format(&m);
	put_tasks(&m);
	page_begin(&m, T(0));
	event_switch(&m, T(0), 0, "swapper", 0, 120, 9, "x");
	put_waking(&m, T(1), 9, 7);
	page_flush(&m, 0, 0);
	for (unsigned i = 0; i < SHORT_TASKS; i += SHORT_PER_FLUSH)
		put_short_tasks(&m, i);
	page_begin(&m, T(40 * S));
	event_switch(&m, T(40 * S), 9, "x", 1, 120, 7, "pulse-1");
	maker_finish(&m);
	from = m.fd;
	feed_begin(&feed, from);
	follow.userdata = &feed;
	m.fd = feed.to;
	run(&m, &follow, &condition, 1, &frames);
	close(from);
	put_frames(&frames, &text);
	assert_string_equal(buf_string(&text), expected);
	/* 10 MiB; with all tasks at least 34 MiB. */
	assert_true(feed.memory_max < 20U << 20);
}

static void a_stream_is_watched_while_it_grows(void **state _unused_)
{
	assert_watched_while_it_grows("sched.delay > 1s for comm=pulse*",
				      "0 40000000000 39999999999 0 7 pulse-1\n");
}

static void tasks_are_forgotten_without_a_delay(void **state _unused_)
{
	assert_watched_while_it_grows("irq.max > 1s", "");
}

static void conditions_are_checked(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	const char *conditions[WATCH_CONDITIONS_MAX + 1];
	struct export_watch watch = { conditions, 0 };
	struct export_options o = { .format = "watch" };

	for (size_t i = 0; i < ARRAY_SIZE(conditions); i++)
		conditions[i] = "lost > 0";
	maker_begin(&m, 4096);
	page_begin(&m, T(0));
	event_number(&m, T(0), 1, 1);
	maker_finish(&m);
	for (unsigned i = 0; i < 4; i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		struct export_result result = { 0 };
		static const struct {
			size_t count;
			const char *first;
			int code;
		} cases[] = {
			{ 0, "lost > 0", -EINVAL },
			{ WATCH_CONDITIONS_MAX + 1, "lost > 0", -EINVAL },
			{ 1, "lost", -EINVAL },
			/* The recording has no such event. */
			{ 1, "event no:such", -ENODATA },
		};

		conditions[0] = cases[i].first;
		watch.count = cases[i].count;
		o.watch = i ? &watch : NULL;
		assert_int_equal(
			export_run(&watch_sink_ops, m.fd, memory_file("", 0), &o, &result, &err),
			cases[i].code);
		assert_non_null(err.message);
		export_result_deinit(&result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_condition_has_its_parts),
		cmocka_unit_test(an_error_shows_its_place),
		cmocka_unit_test(a_delay_fires_when_the_task_runs),
		cmocka_unit_test(a_loss_makes_no_delay),
		cmocka_unit_test(handlers_fire),
		cmocka_unit_test(events_fire),
		cmocka_unit_test(slices_fire),
		cmocka_unit_test(marks_of_libtraced_fire),
		cmocka_unit_test(a_burst_is_counted),
		cmocka_unit_test(a_stream_is_watched_while_it_grows),
		cmocka_unit_test(tasks_are_forgotten_without_a_delay),
		cmocka_unit_test(conditions_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
