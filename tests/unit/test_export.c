/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whole synthetic captures, through the whole exporter. */
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cmocka.h>

#include "exported.h"
#include "formats/formats.h"
#include "make_usual.h"

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
	maker_usual(&m);
	export_whole(&r, m.fd);
	assert_int_equal(r.result.own_events, 0);
	assert_non_null(strstr(r.file.data, "\"clock-domain\":\"LINUX_FTRACE_GLOBAL\""));
	assert_null(strstr(r.file.data, "clock_sync"));
}

static void every_event_is_accounted_for(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "traced" };
	const struct ledger_row *cpu;
	struct stat st;

	maker_init(&m, 8, false, 1024);
	maker_usual(&m);
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

static void counts_that_do_not_add_up_are_reported(void **state _unused_)
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
static void counts_that_decrease_are_reported(void **state _unused_)
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

static void a_trace_without_events_warns(void **state _unused_)
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
		maker_usual(&m);
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

static void a_page_has_the_losses(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported r = { .options.format = "html" };

	maker_init(&m, 8, false, 1024);
	maker_usual(&m);
	export_whole(&r, m.fd);
	assert_non_null(strstr(r.file.data, "\"lost\":5"));
	assert_non_null(strstr(r.file.data, "\"lost_overrun\":3,\"lost_other\":2"));
}

/* The limit counts bytes of the text in the file, where a newline has two. */
static void json_that_no_viewer_opens_is_not_written(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported whole = { .options = { .format = "json" } };
	_cleanup_exported_ struct exported fits = { .options = { .format = "json" } };
	_cleanup_exported_ struct exported too_long = { .options = { .format = "json" } };
	const char *text, *end;

	maker_init(&m, 8, false, 1024);
	maker_usual(&m);
	export_whole(&whole, m.fd);
	text = whole.file.data + strlen("{\"systemTraceEvents\":\"");
	end = strstr(text, "\",\n\"traceEvents\"");
	assert_non_null(end);
	fits.options.json_string_max = (uint64_t)(end - text);
	export_whole(&fits, m.fd);
	too_long.options.json_string_max = (uint64_t)(end - text) - 1;
	try_export(&too_long, m.fd);
	assert_int_equal(too_long.code, -EOVERFLOW);
	assert_non_null(strstr(too_long.err.hint, ".pftrace"));
}

static void gzip_holds_the_same(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported plain = { .options.format = "json" };
	_cleanup_exported_ struct exported packed = { .options.format = "json.gz" };
	_cleanup_free_ char *text = NULL;
	z_stream z = { 0 };

	maker_init(&m, 8, false, 1024);
	maker_usual(&m);
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
	maker_usual(&m);
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
	assert_string_equal(text_body(r.file.data),
			    "          <idle>-0       [000] d..2.     1.000000: number: value=1\n"
			    "CPU:0 [LOST EVENTS]\n"
			    "          <idle>-0       [000] d..2.     3.000000: number: value=3\n");
}

/*
 * Formats that claim no size for a common field. The sub-buffer, the chunk and the window end where
 * the record ends, which is too short for it.
 */
static const struct {
	const char *common;
	uint32_t record;
} unsized[] = {
	{ "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	  "\tfield:int common_pid;\toffset:4;\tsize:0;\tsigned:1;\n\n",
	  4 },
	{ "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	  "\tfield:unsigned char common_preempt_lazy_count;\toffset:8;\tsize:0;\tsigned:0;\n\n",
	  8 },
	{ "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	  "\tfield:unsigned char common_migrate_disable;\toffset:8;\tsize:0;\tsigned:0;\n\n",
	  8 },
};

static void no_record_is_read_beyond_its_end(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(unsized); i++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_exported_ struct exported r = { .options.format = "txt" };

		maker_init(&m, 8, false, 1024);
		m.common = unsized[i].common;
		maker_head(&m);
		page_begin(&m, 1 * S);
		event_number(&m, 1 * S, 0, 1);
		/* Shorter ones first, where that fills the page. */
		while (m.page.len < 1024)
			page_record(&m, 1 * S, "\x64\0\0\0\0\0\0",
				    (1024 - m.page.len) % (4 + unsized[i].record)
					    ? 4
					    : unsized[i].record);
		maker_finish(&m);
		export_whole(&r, m.fd);
		assert_int_equal(r.result.events, 1);
		assert_true(r.result.incomplete);
		assert_non_null(strstr(r.result.warnings[0], "damaged records"));
	}
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
	maker_usual(&m);
	try_export(&no_format, m.fd);
	assert_int_equal(no_format.code, -EINVAL);
	assert_int_equal(ftruncate(m.fd, 100), 0);
	assert_int_equal(pwrite(m.fd, "#!/bin/sh", 9, 0), 9);
	try_export(&no_stream, m.fd);
	assert_int_equal(no_stream.code, -EBADMSG);
	maker_deinit(&m);
	maker_init(&m, 8, false, 1024);
	maker_usual(&m);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_of_marks),
		cmocka_unit_test(the_recorders_own_sync_mark_ties_text_and_json),
		cmocka_unit_test(without_the_sync_mark_the_domain_ties),
		cmocka_unit_test(every_event_is_accounted_for),
		cmocka_unit_test(counts_that_do_not_add_up_are_reported),
		cmocka_unit_test(counts_that_decrease_are_reported),
		cmocka_unit_test(a_trace_without_events_warns),
		cmocka_unit_test(json_is_what_viewers_take),
		cmocka_unit_test(a_page_has_the_losses),
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
