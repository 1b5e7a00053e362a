/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whole synthetic captures, through the whole exporter. */
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/io.h"
#include "exported.h"
#include "formats/formats.h"
#include "make_formats.h"
#include "make_stream.h"
#include "memory_file.h"

/* The lines after the comments at the head. */
static const char *body(const struct exported *r)
{
	const char *p = r->file.data;

	while (*p == '#') {
		p = strchr(p, '\n');
		assert_non_null(p);
		p++;
	}
	return p;
}

#define MS UINT64_C(1000000)
#define S (UINT64_C(1000) * MS)

/* Two CPUs, a gap, a task that is born and renamed, marks; a second life of tid 7. */
static void make_usual(struct maker *m)
{
	static const struct maker_task tasks[] = {
		{ 7, 7, "old seven", 1 * S, false },
		{ 50, 50, "shell", 1 * S, false },
		{ 60, 60, "kworker/1:2-events", 1 * S, true },
	};
	static const struct maker_stats start[] = { { .cpu = 0 }, { .cpu = 1 } };
	static const struct maker_stats end[] = {
		{ .cpu = 0, .read = 6 },
		{ .cpu = 1, .read = 4, .overrun = 3, .dropped = 2 },
	};

	maker_head(m);
	maker_stats(m, 0, start, 2);
	maker_tasks(m, 100 * S, 0, tasks, 3);

	page_begin(m, 100 * S);
	event_newtask(m, 102 * S, 50, 70, "shell", 0);
	event_rename(m, 102 * S + 1, 70, "shell", "child");
	event_newtask(m, 102 * S + 2, 70, 71, "child", 0x10000);
	event_newtask(m, 103 * S, 50, 7, "new seven", 0);
	page_end(m, 0);
	maker_flush(m, 0, BUFFER_TASKS, 0);

	page_begin(m, 101 * S);
	event_number(m, 101 * S + 499, 7, 1);
	event_number(m, 101 * S + 500, 50, 2);
	event_number(m, 102 * S, 71, 4);
	page_end(m, 0);
	page_begin(m, 104 * S);
	event_number(m, 104 * S, 7, 6);
	event_print_mark(m, 104 * S + 10 * MS, 71, "hello");
	event_switch(m, 104 * S + 20 * MS, 60, "kworker/1:2", 128, -1, 7, "new seven");
	page_flush(m, 0, 0);

	page_begin(m, 101 * S);
	event_number(m, 101 * S + 500, 0, 3);
	page_end(m, 0);
	page_begin(m, 103 * S);
	event_number(m, 103 * S, 99, 5);
	event_number(m, 105 * S, 70, 7);
	event_print_mark(m, 105 * S, 71, "B|70|work \"here\"\\\x01\xff\xc3\xa4");
	page_flush(m, 2, 1);
	maker_stats(m, 2, end, 2);
	maker_end(m);
}

static const char usual_text[] =
	"       old seven-7       [000] d..2.   101.000000: number: value=1\n"
	"           shell-50      [000] d..2.   101.000001: number: value=2\n"
	"          <idle>-0       [001] d..2.   101.000001: number: value=3\n"
	"           child-71      [000] d..2.   102.000000: number: value=4\n"
	"CPU:1 [LOST 2 EVENTS]\n"
	"           <...>-99      [001] d..2.   103.000000: number: value=5\n"
	"       new seven-7       [000] d..2.   104.000000: number: value=6\n"
	"           child-71      [000] d..2.   104.010000: 0x00001234: hello\n"
	"     kworker/1:2-60      [000] d..2.   104.020000: sched_switch: prev_comm=kworker/1:2 "
	"prev_pid=60 prev_prio=-1 prev_state=I ==> next_comm=new seven next_pid=7 next_prio=120\n"
	"           child-70      [001] d..2.   105.000000: number: value=7\n"
	"           child-71      [001] d..2.   105.000000: 0x00001234: "
	"B|70|work \"here\"\\\x01\xff\xc3\xa4\n"
	"CPU:1 [LOST 3 EVENTS]\n";

static const char usual_head[] = "# tracer: nop\n"
				 "#\n"
				 "# entries-in-buffer/entries-written: 10/13   #P:2\n"
				 "#\n"
				 "#                                _-----=> irqs-off/BH-disabled\n"
				 "#                               / _----=> need-resched\n"
				 "#                              | / _---=> hardirq/softirq\n"
				 "#                              || / _--=> preempt-depth\n"
				 "#                              ||| / _-=> migrate-disable\n"
				 "#                              |||| /     delay\n"
				 "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
				 "#              | |         |   |||||     |         |\n";

static const struct machine {
	unsigned word_size;
	bool big_endian;
} machines[] = { { 8, false }, { 8, true }, { 4, false }, { 4, true } };

static void text_is_the_kernels(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_exported_ struct exported r = { .options.format = "txt" };

		maker_init(&m, machines[i].word_size, machines[i].big_endian, 1024);
		make_usual(&m);
		export_whole(&r, m.fd);
		assert_string_equal(body(&r), usual_text);
		assert_int_equal(body(&r) - r.file.data, sizeof(usual_head) - 1);
		assert_memory_equal(r.file.data, usual_head, sizeof(usual_head) - 1);
		assert_int_equal(r.result.bytes, r.file.len);
		assert_false(r.result.incomplete);
		assert_int_equal(r.result.warning_count, 0);
	}
}

/* Sub-buffers of a real kernel, and its own `trace` file of the same buffer with hash-ptr off. */
static void recorded_text_is_the_kernels(void **state _unused_)
{
	_cleanup_close_ int fd = open(TEST_DATA "/6.18.44/sched.traced", O_RDONLY | O_CLOEXEC);
	_cleanup_buf_ struct buf expect = BUF_INIT;
	_cleanup_exported_ struct exported r = { .options = { .format = "txt",
							      .raw_addresses = true } };

	assert_true(fd >= 0);
	assert_int_equal(read_file_at(AT_FDCWD, TEST_DATA "/6.18.44/sched.txt", 1 << 20, &expect),
			 0);
	export_whole(&r, fd);
	assert_int_equal(r.result.events, 1812);
	assert_string_equal(r.file.data, buf_string(&expect));
}

/* A name, a mark or an event of any kind, where readers take "NAME: details" only. */
static void json_of_marks(void **state _unused_)
{
	static const struct {
		const char *text, *first, *second;
	} marks[] = {
		{ "E", "E", NULL },
		{ "E|70", "E|70", NULL },
		{ "C|70|load|3", "C|70|load|3", NULL },
		{ "S|70|io|9", "S|70|io|9", NULL },
		{ "B|70|a: b", "B|70|a: b", NULL },
		{ "B|70", "B|5|B/70", "E|5" },
		{ "two\nlines", "B|5|two lines", "E|5" },
		{ "trace_event_clock_sync: parent_ts=5", "B|5|trace_event_clock-sync: parent_ts=5",
		  "E|5" },
		{ "", "B|5|-", "E|5" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_exported_ struct exported r = { .options.format = "json" };
		_cleanup_buf_ struct buf expect = BUF_INIT;
		const char *head = "           <...>-5       [000] d..2.     1.000000: "
				   "tracing_mark_write: ";
		json_t *json;

		maker_begin(&m, 1024);
		page_begin(&m, 1 * S);
		event_print_mark(&m, 1 * S, 5, marks[i].text);
		maker_finish(&m);
		export_whole(&r, m.fd);
		json = json_loads(r.file.data, JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(json);
		buf_printf(&expect, "# tracer: nop\n%s%s\n", head, marks[i].first);
		if (marks[i].second)
			buf_printf(&expect, "%s%s\n", head, marks[i].second);
		assert_string_equal(json_string_value(json_object_get(json, "systemTraceEvents")),
				    buf_string(&expect));
		json_decref(json);
	}
}

static void the_recorders_own_sync_mark_ties_text_and_json(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "json" };

	maker_begin(&m, 1024);
	page_begin(&m, 1 * S + 1700);
	event_print_mark(&m, 1 * S + 1700, 5, "trace_event_clock_sync: name=traced_abcdef01");
	/* A copy by somebody else must neither become a second tie nor make an import fail. */
	event_print_mark(&m, 2 * S, 5, "trace_event_clock_sync: name=traced_abcdef01");
	maker_finish(&m);
	export_whole(&r, m.fd);
	assert_int_equal(r.result.events, 2);
	assert_int_equal(r.result.own_events, 1);
	assert_non_null(strstr(r.file.data,
			       " 1.000002: tracing_mark_write: trace_event_clock_sync: "
			       "name=traced_abcdef01\\n"));
	assert_non_null(
		strstr(r.file.data, " 2.000000: tracing_mark_write: B|5|trace_event_clock-sync: "));
	/* At the text's own microsecond: the offset between the two is zero. */
	assert_non_null(strstr(r.file.data,
			       "{\"name\":\"clock_sync\",\"ph\":\"c\",\"cat\":\"__metadata\","
			       "\"pid\":0,\"tid\":0,\"ts\":1000002,\"args\":{\"sync_id\":"
			       "\"traced_abcdef01\",\"issue_ts\":1000002}}"));
	/* Two ties at once make the import fail. */
	assert_null(strstr(r.file.data, "clock-domain"));
}

static void without_the_sync_mark_the_domain_ties(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "json" };

	maker_init(&m, 8, false, 1024);
	make_usual(&m);
	export_whole(&r, m.fd);
	assert_int_equal(r.result.own_events, 0);
	assert_non_null(strstr(r.file.data, "\"clock-domain\":\"LINUX_FTRACE_GLOBAL\""));
	assert_null(strstr(r.file.data, "clock_sync"));
}

static void tgid_column(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options = { .format = "txt", .tgid = true } };

	maker_init(&m, 8, false, 1024);
	make_usual(&m);
	export_whole(&r, m.fd);
	assert_non_null(
		strstr(r.file.data, "#           TASK-PID       TGID    CPU#  |||||  TIMESTAMP"));
	assert_non_null(strstr(
		r.file.data,
		"           child-71      (     70) [000] d..2.   102.000000: number: value=4\n"));
	assert_non_null(strstr(
		r.file.data,
		"           <...>-99      (-------) [001] d..2.   103.000000: number: value=5\n"));
	assert_non_null(strstr(
		r.file.data,
		"          <idle>-0       (-------) [001] d..2.   101.000001: number: value=3\n"));
}

static void every_event_is_accounted_for(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "traced" };
	const struct ledger_row *cpu;
	struct stat st;

	maker_init(&m, 8, false, 1024);
	make_usual(&m);
	export_whole(&r, m.fd);
	assert_int_equal(r.result.events, 10);
	assert_int_equal(r.result.lost, 5);
	assert_int_equal(r.result.event_types, 3);
	assert_int_equal(r.result.span_ns, 4 * S - 499);
	assert_int_equal(r.result.ledger_count, 2);
	cpu = &r.result.ledger[1];
	assert_int_equal(cpu->cpu, 1);
	assert_int_equal(cpu->written, 9);
	assert_int_equal(cpu->events, 4);
	assert_int_equal(cpu->lost_overrun, 3);
	assert_int_equal(cpu->lost_other, 2);
	assert_int_equal(cpu->gaps, 2);
	/* This format is the stream itself. */
	assert_int_equal(fstat(m.fd, &st), 0);
	assert_int_equal(r.file.len, st.st_size);
}

static void counts_that_do_not_add_up_are_told(void **state _unused_)
{
	static const struct maker_stats start[] = { { .cpu = 0 } };
	static const struct maker_stats end[] = { { .cpu = 0, .read = 7, .entries = 1 } };
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "txt" };

	maker_begin(&m, 1024);
	maker_stats(&m, 0, start, 1);
	page_begin(&m, 1 * S);
	event_number(&m, 1 * S, 1, 1);
	page_flush(&m, 0, 0);
	maker_stats(&m, 2, end, 1);
	maker_end(&m);
	export_whole(&r, m.fd);
	assert_int_equal(r.result.warning_count, 1);
	assert_non_null(strstr(r.result.warnings[0], "do not add up"));
	assert_int_equal(r.result.ledger[0].unread, 1);
}

/* The kernel empties its rings when a module with recorded events is unloaded. */
static void counts_that_begin_anew_are_told(void **state _unused_)
{
	static const struct maker_stats cases[][2] = {
		{ { .cpu = 0 }, { .cpu = 0, .read = 1 } },
		/* Another owner's buffer, from which much was read before. */
		{ { .cpu = 0, .read = 1000 }, { .cpu = 0, .read = 2 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_exported_ struct exported r = { .options.format = "txt" };

		maker_begin(&m, 1024);
		maker_stats(&m, 0, &cases[i][0], 1);
		page_begin(&m, 1 * S);
		for (uint32_t k = 0; k < 3; k++)
			event_number(&m, 1 * S, 1, k);
		page_flush(&m, 0, 0);
		maker_stats(&m, 2, &cases[i][1], 1);
		maker_end(&m);
		export_whole(&r, m.fd);
		assert_int_equal(r.result.warning_count, 1);
		assert_non_null(strstr(r.result.warnings[0],
				       "the counts of 1 CPU decreased, or are below"));
		assert_true(r.result.incomplete);
		assert_int_equal(r.result.ledger[0].written, 3);
		assert_int_equal(r.result.ledger[0].lost_overrun, 0);
	}
}

/* The same sub-buffer was read while the kernel filled it, and again later. */
static void what_was_read_before_is_skipped(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "txt" };

	maker_begin(&m, 1024);
	page_begin(&m, 1 * S);
	event_number(&m, 1 * S, 0, 1);
	event_number(&m, 2 * S, 0, 2); /* with a time extend: 8 + 16 bytes */
	page_flush(&m, 5, 0);
	page_begin(&m, 1 * S);
	event_number(&m, 1 * S, 0, 1);
	event_number(&m, 2 * S, 0, 2);
	event_number(&m, 3 * S, 0, 3);
	page_end(&m, 5);
	page_begin(&m, 4 * S);
	event_number(&m, 4 * S, 0, 4);
	page_end(&m, 0);
	maker_flush(&m, 0, BUFFER_MAIN, 16 + 8 + 16);
	maker_end(&m);
	export_whole(&r, m.fd);
	assert_string_equal(body(&r),
			    "CPU:0 [LOST 5 EVENTS]\n"
			    "          <idle>-0       [000] d..2.     1.000000: number: value=1\n"
			    "          <idle>-0       [000] d..2.     2.000000: number: value=2\n"
			    "          <idle>-0       [000] d..2.     3.000000: number: value=3\n"
			    "          <idle>-0       [000] d..2.     4.000000: number: value=4\n");
}

static void names_are_searched_where_no_source_tells(void **state _unused_)
{
	static const struct maker_task saved[] = { { 5, 0, "saved", 0, false } };
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "txt" };

	maker_begin(&m, 1024);
	maker_tasks(&m, 0, 1, saved, 1);
	page_begin(&m, 1 * S);
	event_number(&m, 1 * S, 5, 1);
	event_number(&m, 1 * S, 6, 2);
	event_switch(&m, 2 * S, 6, "six", 1, 120, 5, "five");
	maker_finish(&m);
	export_whole(&r, m.fd);
	assert_non_null(strstr(r.file.data, "           saved-5       [000] d..2.     1.000000"));
	assert_non_null(strstr(r.file.data, "             six-6       [000] d..2.     1.000000"));
}

static void older_kernels_have_other_columns(void **state _unused_)
{
	static const char head[] =
		"# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:8\n#\n"
		"#                              _-----=> irqs-off\n"
		"#                             / _----=> need-resched\n"
		"#                            | / _---=> hardirq/softirq\n"
		"#                            || / _--=> preempt-depth\n"
		"#                            ||| /     delay\n"
		"#           TASK-PID   CPU#  ||||    TIMESTAMP  FUNCTION\n"
		"#              | |       |   ||||       |         |\n";
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "txt" };

	maker_init(&m, 8, false, 1024);
	m.release = "5.4.0-42-generic";
	m.trace_header = head;
	m.clock = "counter";
	maker_head(&m);
	page_begin(&m, 1);
	event_number(&m, 123, 0, 1);
	maker_finish(&m);
	export_whole(&r, m.fd);
	assert_non_null(strstr(r.file.data, strstr(head, "#                              _")));
	assert_string_equal(body(&r),
			    "          <idle>-0     [000] d..2          123: number: value=1\n");
}

static void no_event_is_said_loudly(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "json" };
	json_t *json;

	maker_begin(&m, 1024);
	maker_end(&m);
	export_whole(&r, m.fd);
	assert_int_equal(r.result.events, 0);
	assert_int_equal(r.result.warning_count, 1);
	assert_non_null(strstr(r.result.warnings[0], "no event"));
	json = json_loads(r.file.data, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	json_decref(json);
}

static const char usual_json[] =
	"# tracer: nop\n"
	"       old seven-7       [000] d..2.   101.000000: number: value=1\n"
	"           shell-50      [000] d..2.   101.000001: number: value=2\n"
	"          <idle>-0       [001] d..2.   101.000001: number: value=3\n"
	"           child-71      [000] d..2.   102.000000: number: value=4\n"
	"# CPU:1 [LOST 2 EVENTS]\n"
	"           <...>-99      [001] d..2.   103.000000: number: value=5\n"
	"       new seven-7       [000] d..2.   104.000000: number: value=6\n"
	"           child-71      [000] d..2.   104.010000: tracing_mark_write: B|70|hello\n"
	"           child-71      [000] d..2.   104.010000: tracing_mark_write: E|70\n"
	"     kworker/1:2-60      [000] d..2.   104.020000: sched_switch: prev_comm=kworker/1:2 "
	"prev_pid=60 prev_prio=0 prev_state=S ==> next_comm=new seven next_pid=7 next_prio=120\n"
	"           child-70      [001] d..2.   105.000000: number: value=7\n"
	"           child-71      [001] d..2.   105.000000: tracing_mark_write: "
	"B|70|work \"here\"\\\\x01\xef\xbf\xbd\xc3\xa4\n"
	"# CPU:1 [LOST 3 EVENTS]\n";

/* The args.name of the metadata event of that kind; NULL: none. */
static const char *meta_name(json_t *events, const char *kind, int pid, int tid)
{
	const char *found = NULL;
	json_t *e;
	size_t i;

	json_array_foreach(events, i, e)
	{
		assert_string_equal(json_string_value(json_object_get(e, "ph")), "M");
		assert_null(json_object_get(e, "ts"));
		if (strcmp(json_string_value(json_object_get(e, "name")), kind) == 0 &&
		    json_integer_value(json_object_get(e, "pid")) == pid &&
		    json_integer_value(json_object_get(e, "tid")) == tid) {
			assert_null(found);
			found = json_string_value(
				json_object_get(json_object_get(e, "args"), "name"));
		}
	}
	return found;
}

static void json_is_what_viewers_take(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_exported_ struct exported r = { .options.format = "json" };
		json_t *json, *events, *other;

		maker_init(&m, machines[i].word_size, machines[i].big_endian, 1024);
		make_usual(&m);
		export_whole(&r, m.fd);
		json = json_loads(r.file.data, JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(json);
		assert_string_equal(json_string_value(json_object_get(json, "systemTraceEvents")),
				    usual_json);
		assert_string_equal(json_string_value(json_object_get(json, "displayTimeUnit")),
				    "ns");
		events = json_object_get(json, "traceEvents");
		assert_string_equal(meta_name(events, "thread_name", 70, 71), "child");
		assert_string_equal(meta_name(events, "thread_name", 70, 70), "child");
		assert_string_equal(meta_name(events, "process_name", 70, 70), "child");
		assert_string_equal(meta_name(events, "thread_name", 7, 7), "new seven");
		assert_null(meta_name(events, "process_name", 99, 99));
		other = json_object_get(json, "otherData");
		assert_int_equal(json_integer_value(json_object_get(other, "events")), 10);
		assert_int_equal(json_integer_value(json_object_get(other, "lost")), 5);
		assert_int_equal(json_array_size(json_object_get(other, "cpus")), 2);
		json_decref(json);
	}
}

static void json_that_no_viewer_opens_is_not_written(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options = { .format = "json",
							      .json_string_max = 500 } };
	_cleanup_exported_ struct exported fits = {
		/*
		 * The limit counts UTF-16 units: two characters of the text have more bytes than
		 * that.
		 */
		.options = { .format = "json", .json_string_max = sizeof(usual_json) - 1 - 3 },
	};
	_cleanup_exported_ struct exported too_long = {
		.options = { .format = "json", .json_string_max = sizeof(usual_json) - 1 - 4 },
	};

	maker_init(&m, 8, false, 1024);
	make_usual(&m);
	try_export(&r, m.fd);
	assert_int_equal(r.code, -EOVERFLOW);
	assert_non_null(strstr(r.err.hint, ".pftrace"));
	export_whole(&fits, m.fd);
	try_export(&too_long, m.fd);
	assert_int_equal(too_long.code, -EOVERFLOW);
}

static void gzip_holds_the_same(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported plain = { .options.format = "json" };
	_cleanup_exported_ struct exported packed = { .options.format = "json.gz" };
	_cleanup_free_ char *text = NULL;
	z_stream z = { 0 };

	maker_init(&m, 8, false, 1024);
	make_usual(&m);
	try_export(&plain, m.fd);
	export_whole(&packed, m.fd);
	assert_true(packed.file.len < plain.file.len / 2);
	text = calloc(1, plain.file.len + 1);
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_in = (unsigned char *)packed.file.data;
	z.avail_in = (unsigned)packed.file.len;
	z.next_out = (unsigned char *)text;
	z.avail_out = (unsigned)plain.file.len + 1;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	inflateEnd(&z);
	assert_string_equal(text, plain.file.data);
}

static void a_cut_stream_is_exported_up_to_there(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	uint64_t last_events = 0;
	bool exported = false;
	off_t size;

	maker_init(&m, 8, false, 1024);
	make_usual(&m);
	size = (off_t)m.writer.bytes;
	for (off_t at = 0; at < size; at += 8) {
		_cleanup_exported_ struct exported r = { .options.format = "txt" };
		_cleanup_(maker_deinit) struct maker cut = { .fd = memfd_create("cut", 0) };
		loff_t from = 0;

		while (from < at)
			assert_true(copy_file_range(m.fd, &from, cut.fd, NULL, (size_t)(at - from),
						    0) > 0);
		try_export(&r, cut.fd);
		if (r.code < 0) {
			assert_int_equal(r.code, -EBADMSG);
			assert_false(exported);
			assert_non_null(r.err.hint);
			continue;
		}
		exported = true;
		assert_true(r.result.incomplete);
		assert_true(r.result.warning_count > 0);
		assert_true(r.result.events >= last_events);
		last_events = r.result.events;
	}
	assert_true(exported);
	assert_int_equal(last_events, 10);
}

static void damage_costs_one_chunk(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "txt" };
	uint64_t first, byte;

	maker_begin(&m, 1024);
	for (uint64_t i = 1; i <= 3; i++) {
		page_begin(&m, i * S);
		event_number(&m, i * S, 0, (uint32_t)i);
		page_end(&m, 0);
		first = m.writer.bytes;
		maker_flush(&m, 0, BUFFER_MAIN, 0);
		if (i == 2) {
			byte = 0;
			assert_int_equal(pwrite(m.fd, &byte, 1, (off_t)first + 24 + 8 + 16), 1);
		}
	}
	maker_end(&m);
	export_whole(&r, m.fd);
	assert_int_equal(r.result.warning_count, 1);
	assert_non_null(strstr(r.result.warnings[0], "damaged"));
	assert_string_equal(body(&r),
			    "          <idle>-0       [000] d..2.     1.000000: number: value=1\n"
			    "CPU:0 [LOST EVENTS]\n"
			    "          <idle>-0       [000] d..2.     3.000000: number: value=3\n");
}

/* The sub-buffer, the chunk and the window end where the record ends. */
static void no_record_is_read_beyond_its_end(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "txt" };

	maker_init(&m, 8, false, 1024);
	m.common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		   "\tfield:int common_pid;\toffset:4;\tsize:0;\tsigned:1;\n\n";
	maker_head(&m);
	page_begin(&m, 1 * S);
	event_number(&m, 1 * S, 0, 1);
	while (m.page.len < 1024)
		page_record(&m, 1 * S, "\x64\0\0", 4);
	maker_finish(&m);
	export_whole(&r, m.fd);
	assert_int_equal(r.result.events, 1);
	assert_true(r.result.incomplete);
	assert_non_null(strstr(r.result.warnings[0], "damaged records"));
}

static void failures_have_their_number(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_close_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	_cleanup_exported_ struct exported no_format = { .options.format = "xml" };
	_cleanup_exported_ struct exported no_stream = { .options.format = "txt" };
	struct export_options o = { .format = "json" };
	struct export_result result;

	maker_init(&m, 8, false, 1024);
	make_usual(&m);
	try_export(&no_format, m.fd);
	assert_int_equal(no_format.code, -EINVAL);
	assert_int_equal(ftruncate(m.fd, 100), 0);
	assert_int_equal(pwrite(m.fd, "#!/bin/sh", 9, 0), 9);
	try_export(&no_stream, m.fd);
	assert_int_equal(no_stream.code, -EBADMSG);
	maker_deinit(&m);
	maker_init(&m, 8, false, 1024);
	make_usual(&m);
	assert_int_equal(export_stream(m.fd, full, &o, &result, NULL), -ENOSPC);
	export_result_deinit(&result);
	assert_int_equal(export_format_check_merges(export_format_find("traced", NULL), NULL),
			 -EINVAL);
	assert_int_equal(export_format_check_functions(export_format_find("txt", NULL),
						       FUNCTION_SLICES, NULL),
			 -EINVAL);
}

static void formats_are_found(void **state _unused_)
{
	assert_string_equal(export_format_find(NULL, "a/out.json.gz")->name, "json.gz");
	assert_string_equal(export_format_find(NULL, "out.json")->name, "json");
	assert_string_equal(export_format_find("txt", "out.json")->name, "txt");
	assert_null(export_format_find(NULL, ".json"));
	assert_null(export_format_find("png", "out.json"));
	assert_null(export_format_find(NULL, NULL));
}

static void tasks_in_pages_of_512(Traced__Capture__Header *h)
{
	h->tasks_subbuf_size = 512;
}

/* A top-level buffer may have larger sub-buffers than the instance beside it. */
static void rings_may_differ_in_their_sub_buffers(void **state _unused_)
{
	_cleanup_exported_ struct exported r = { .options = { .format = "txt" } };
	struct maker m, tasks;

	maker_init(&m, 8, false, 4096);
	maker_init(&tasks, 8, false, 512);
	m.header = tasks_in_pages_of_512;
	maker_head(&m);
	for (int32_t pid = 50; pid < 90; pid++) {
		page_begin(&tasks, 100 * S + (uint64_t)pid);
		event_newtask(&tasks, 100 * S + (uint64_t)pid, 1, pid, "born", 0);
		page_end(&tasks, 0);
	}
	buf_append(&m.subbufs, tasks.subbufs.data, tasks.subbufs.len);
	maker_flush(&m, 0, BUFFER_TASKS, 0);
	page_begin(&m, 101 * S);
	for (int32_t pid = 50; pid < 90; pid++)
		event_number(&m, 101 * S + (uint64_t)pid, pid, 1);
	maker_finish(&m);
	export_whole(&r, m.fd);
	assert_int_equal(r.result.warning_count, 0);
	assert_int_equal(r.result.events, 40);
	assert_non_null(strstr(r.file.data, "born-50 "));
	assert_non_null(strstr(r.file.data, "born-89 "));
	maker_deinit(&tasks);
	maker_deinit(&m);
}

/* The task ended before procfs was read, and was born before the recording. */
static void who_ended_early_has_the_name_of_its_end(void **state _unused_)
{
	_cleanup_exported_ struct exported r = { .options = { .format = "txt" } };
	struct maker m;

	maker_begin(&m, 4096);
	maker_free_format(&m);
	page_begin(&m, 102 * S);
	event_free(&m, 102 * S, 60, "brief");
	page_end(&m, 0);
	maker_flush(&m, 0, BUFFER_TASKS, 0);
	page_begin(&m, 101 * S);
	event_number(&m, 101 * S, 60, 1);
	maker_finish(&m);
	export_whole(&r, m.fd);
	assert_non_null(strstr(r.file.data, " brief-60 "));
	maker_deinit(&m);
}

static void name_user_code(Traced__Capture__Header *h)
{
	h->trace_options = (char *)"userstacktrace\nsym-userobj\n";
}

struct mapped {
	uint64_t start;
	const char *path;
};

/* Maps one page each, for process 7. */
static void put_mappings(struct maker *m, const struct mapped *mapped, size_t count, bool all)
{
	Traced__Capture__Mapping mappings[8], *pointers[8];
	Traced__Capture__ProcessMappings process = TRACED__CAPTURE__PROCESS_MAPPINGS__INIT,
					 *processes = &process;
	Traced__Capture__Mappings message = TRACED__CAPTURE__MAPPINGS__INIT;

	for (size_t i = 0; i < count; i++) {
		pointers[i] = &mappings[i];
		mappings[i] = (Traced__Capture__Mapping)TRACED__CAPTURE__MAPPING__INIT;
		mappings[i].start = mapped[i].start;
		mappings[i].end = mapped[i].start + 0x1000;
		mappings[i].path.data = (uint8_t *)(uintptr_t)mapped[i].path;
		mappings[i].path.len = strlen(mapped[i].path);
	}
	process.pid = 7;
	process.n_mappings = count;
	process.mappings = pointers;
	message.n_processes = 1;
	message.processes = &processes;
	message.all = all;
	assert_int_equal(stream_write_message(&m->writer, CHUNK_MAPPINGS, &message.base), 0);
}

/* stack: of process 7, up to the first 0. */
static void check_user_stack(struct maker *m, const uint64_t *stack, const char *text)
{
	_cleanup_exported_ struct exported r = { .options = { .format = "txt" } };
	_cleanup_buf_ struct buf data = BUF_INIT;

	maker_u32(m, &data, 7);
	maker_u32(m, &data, 0);
	for (size_t i = 0; i < 8; i++)
		maker_u64(m, &data, *stack ? *stack++ : 0);
	page_begin(m, 101 * S);
	maker_event(m, 101 * S, 6, 8, data.data, data.len);
	maker_finish(m);
	export_whole(&r, m->fd);
	assert_non_null(strstr(r.file.data, text));
	maker_deinit(m);
}

static void user_stack_head(struct maker *m)
{
	maker_init(m, 8, false, 4096);
	m->header = name_user_code;
	maker_head(m);
	maker_format(m, "ftrace", "user_stack", 6,
		     "\tfield:unsigned int tgid;\toffset:8;\tsize:4;\tsigned:0;\n"
		     "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n",
		     "\"%ps\", (void *)REC->caller[0]");
}

/* The same as seq_print_user_ip() of kernel/trace/trace_output.c, by the recorded mappings. */
static void code_of_programs_is_placed(void **state _unused_)
{
	static const uint64_t stack[] = { 0x7f0000001010, 0x550000000020, 0x10,
					  0x7ffe00000800, 0x7f0000009000, 0 };
	static const struct mapped before[] = { { 0x7f0000001000, "/usr/lib/older.so" } };
	static const struct mapped after[] = { { 0x550000000000, "/tmp/new\nline" },
					       { 0x7f0000001000, "/usr/lib/libc.so.6" },
					       { 0x7ffe00000000, "[vdso]" } };
	struct maker m;

	user_stack_head(&m);
	put_mappings(&m, before, ARRAY_SIZE(before), false);
	put_mappings(&m, after, ARRAY_SIZE(after), false);
	check_user_stack(&m, stack,
			 ": <user stack trace>\n"
			 " => /usr/lib/libc.so.6[+0x10]\n"
			 " => /tmp/new\\012line[+0x20]\n"
			 " =>  <0000000000000010>\n"
			 " =>  <00007ffe00000800>\n"
			 " =>  <00007f0000009000>\n");
}

/* The kernel calls find_vma() and overlooks that an address may lie before what it finds. */
static void no_code_is_placed_as_the_kernel_does(void **state _unused_)
{
	static const uint64_t stack[] = { 0x10,		  0x550000001010, 0x550000002010,
					  0x7f0000009000, 0x7ffe00009000, 0 };
	static const struct mapped before[] = { { 0x550000002000, "/usr/lib/gone.so" },
						{ 0x7fff00000000, "/usr/lib/gone.so" } };
	static const struct mapped after[] = { { 0x550000000000, "/usr/bin/cat" },
					       { 0x550000001000, "" },
					       { 0x7f0000001000, "/usr/lib/libc.so.6" },
					       { 0x7ffe00000000, "[stack]" } };
	struct maker m;

	user_stack_head(&m);
	put_mappings(&m, before, ARRAY_SIZE(before), true);
	put_mappings(&m, after, ARRAY_SIZE(after), true);
	check_user_stack(&m, stack,
			 ": <user stack trace>\n"
			 " => /usr/bin/cat[+0xffffab0000000010]\n"
			 " =>  <0000550000001010>\n"
			 " => /usr/lib/gone.so[+0x10]\n"
			 " =>  <00007f0000009000>\n"
			 " =>  <00007ffe00009000>\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_of_programs_is_placed),
		cmocka_unit_test(no_code_is_placed_as_the_kernel_does),
		cmocka_unit_test(rings_may_differ_in_their_sub_buffers),
		cmocka_unit_test(who_ended_early_has_the_name_of_its_end),
		cmocka_unit_test(text_is_the_kernels),
		cmocka_unit_test(recorded_text_is_the_kernels),
		cmocka_unit_test(json_of_marks),
		cmocka_unit_test(the_recorders_own_sync_mark_ties_text_and_json),
		cmocka_unit_test(without_the_sync_mark_the_domain_ties),
		cmocka_unit_test(tgid_column),
		cmocka_unit_test(every_event_is_accounted_for),
		cmocka_unit_test(counts_that_do_not_add_up_are_told),
		cmocka_unit_test(counts_that_begin_anew_are_told),
		cmocka_unit_test(what_was_read_before_is_skipped),
		cmocka_unit_test(names_are_searched_where_no_source_tells),
		cmocka_unit_test(older_kernels_have_other_columns),
		cmocka_unit_test(no_event_is_said_loudly),
		cmocka_unit_test(json_is_what_viewers_take),
		cmocka_unit_test(json_that_no_viewer_opens_is_not_written),
		cmocka_unit_test(gzip_holds_the_same),
		cmocka_unit_test(a_cut_stream_is_exported_up_to_there),
		cmocka_unit_test(damage_costs_one_chunk),
		cmocka_unit_test(no_record_is_read_beyond_its_end),
		cmocka_unit_test(failures_have_their_number),
		cmocka_unit_test(formats_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
