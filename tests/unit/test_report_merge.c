/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports of parts of a recording, added up, and files that are no such reports. */
#include <jansson.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "exported.h"
#include "make_formats.h"
#include "memory_file.h"
#include "random_series.h"
#include "report/merge_form.h"

#define WORKS 600
#define PARTS 3
#define PER_PAGE 20
#define FIRST_TS (UINT64_C(50) * 1000000000)

#define ID_IRQ_ENTRY 320
#define ID_IRQ_EXIT 321
#define ID_TIMERLAT 322

static const char *const names[] = { "irq", "syscalls", "sched", "runq", "counts", "timerlat" };

/* Something that begins and ends before the next one begins. */
struct work {
	enum { IRQ, SYSCALL, LIFE, SAMPLE, WORK_KINDS } kind;
	uint64_t from, middle, to;
	uint32_t number;
};

static void make_works(struct work works[WORKS], uint64_t seed)
{
	uint64_t series = RANDOM_FIRST + seed, ts = FIRST_TS;

	for (size_t i = 0; i < WORKS; i++) {
		struct work *w = &works[i];

		w->kind = (int)(random_next(&series) % WORK_KINDS);
		w->from = ts + random_next(&series) % 1000;
		w->middle = w->from + 1 + (random_next(&series) >> random_next(&series) % 20 >> 40);
		w->to = w->middle + 1 + (random_next(&series) >> random_next(&series) % 20 >> 40);
		w->number = (uint32_t)(random_next(&series) % 7);
		ts = w->to + 1;
	}
}

static void put_words(struct maker *m, uint64_t ts, uint16_t id, int32_t pid, unsigned bytes,
		      uint32_t value)
{
	_cleanup_buf_ struct buf data = BUF_INIT;

	maker_u32(m, &data, value);
	while (data.len < bytes)
		maker_u32(m, &data, 0);
	maker_event(m, ts, id, pid, data.data, data.len);
}

/* A task that wakes up for the first time, runs, and ends. */
static void put_life(struct maker *m, const struct work *w)
{
	_cleanup_buf_ struct buf data = BUF_INIT;
	int32_t tid = 500 + (int32_t)w->number;
	char comm[16] = "task";

	buf_append(&data, comm, sizeof(comm));
	maker_u32(m, &data, (uint32_t)tid);
	maker_u32(m, &data, 120);
	maker_u32(m, &data, 0);
	maker_event(m, w->from, ID_WAKING, 0, data.data, data.len);
	event_switch(m, w->middle, 0, "swapper", 0, 120, tid, comm);
	event_switch(m, w->to, tid, comm, 0x10, 120, 0, "swapper");
}

/* A late interrupt, and sometimes a later thread. */
static void put_sample(struct maker *m, const struct work *w)
{
	const uint64_t irq[] = { 0, w->middle - w->from }, thread[] = { 1, w->to - w->from };

	maker_event(m, w->middle, ID_TIMERLAT, 1, irq, sizeof(irq));
	if (w->number > 3)
		maker_event(m, w->to, ID_TIMERLAT, 1, thread, sizeof(thread));
}

static void put_work(struct maker *m, const struct work *w)
{
	switch (w->kind) {
	case IRQ:
		put_words(m, w->from, ID_IRQ_ENTRY, 1, 4, w->number);
		put_words(m, w->to, ID_IRQ_EXIT, 1, 4, w->number);
		break;
	case SYSCALL:
		put_words(m, w->from, ID_ENTER, 1, 56, w->number);
		put_words(m, w->to, ID_EXIT, 1, 16, w->number);
		break;
	case SAMPLE:
		put_sample(m, w);
		break;
	default:
		put_life(m, w);
	}
}

/* A recording of some of the works. */
static void make_recording(struct maker *m, const struct work *works, size_t count)
{
	maker_begin(m, 4096);
	maker_kernel_formats(m);
	maker_format(m, "irq", "irq_handler_entry", ID_IRQ_ENTRY,
		     "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n", "\"\"");
	maker_format(m, "irq", "irq_handler_exit", ID_IRQ_EXIT,
		     "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n", "\"\"");
	maker_format(m, "ftrace", "timerlat", ID_TIMERLAT,
		     "\tfield:u64 context;\toffset:8;\tsize:8;\tsigned:0;\n"
		     "\tfield:u64 timer_latency;\toffset:16;\tsize:8;\tsigned:0;\n",
		     "\"\"");
	for (size_t i = 0; i < count; i++) {
		if (i % PER_PAGE == 0 && i)
			page_flush(m, 0, 0);
		if (i % PER_PAGE == 0)
			page_begin(m, works[i].from);
		put_work(m, &works[i]);
	}
	maker_finish(m);
}

static void report_on_works(const struct work *works, size_t count, struct buf *ret)
{
	struct report_options report = { .names = names,
					 .count = ARRAY_SIZE(names),
					 .form = REPORT_JSON };
	struct export_options options = { .format = "report", .report = &report };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_close_ int out = memory_file("", 0);
	struct maker m;

	make_recording(&m, works, count);
	if (export_run(&report_sink_ops, m.fd, out, &options, &result, &err) < 0)
		fail_msg("%s", err.message);
	memory_file_read(out, ret);
	maker_deinit(&m);
}

static int merge_text(struct report_merge *m, const char *text, const char *name, struct error *err)
{
	_cleanup_close_ int fd = memory_file(text, strlen(text));

	return report_merge_add(m, fd, name, err);
}

static json_t *merged_json(struct report_merge *m)
{
	const struct report_options json = { .form = REPORT_JSON };
	_cleanup_buf_ struct buf out = BUF_INIT;
	json_t *document;

	assert_int_equal(report_merge_write(m, &json, &out, NULL), 0);
	document = json_loads(buf_string(&out), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(document);
	return document;
}

/* Everything but the rate: the parts' spans leave out what is between them. */
static void assert_rows_are_equal(const json_t *one, const json_t *other, size_t report)
{
	json_t *a =
		json_object_get(json_array_get(json_object_get(one, "reports"), report), "rows");
	json_t *b =
		json_object_get(json_array_get(json_object_get(other, "reports"), report), "rows");
	size_t i;
	json_t *row;

	assert_true(json_array_size(a) > 0);
	assert_int_equal(json_array_size(a), json_array_size(b));
	json_array_foreach(a, i, row) json_object_del(row, "per_second");
	json_array_foreach(b, i, row) json_object_del(row, "per_second");
	for (i = 0; i < json_array_size(a); i++)
		if (!json_equal(json_array_get(a, i), json_array_get(b, i)))
			fail_msg("%s, row %zu:\n%s\n%s", names[report], i,
				 json_dumps(json_array_get(a, i), 0),
				 json_dumps(json_array_get(b, i), 0));
}

static void parts_equal_the_whole(void **state _unused_)
{
	static struct work works[WORKS];

	for (uint64_t seed = 1; seed <= 5; seed++) {
		_cleanup_(report_merge_freep) struct report_merge *m = NULL;
		_cleanup_buf_ struct buf all = BUF_INIT;
		json_t *whole, *merged;

		make_works(works, seed);
		report_on_works(works, WORKS, &all);
		whole = json_loads(all.data, JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(whole);
		assert_int_equal(report_merge_new(&m), 0);
		for (size_t i = 0; i < PARTS; i++) {
			_cleanup_error_ struct error err = ERROR_INIT;
			_cleanup_buf_ struct buf part = BUF_INIT;

			report_on_works(works + WORKS / PARTS * i, WORKS / PARTS, &part);
			if (merge_text(m, part.data, "part", &err) < 0)
				fail_msg("%s", err.message);
		}
		merged = merged_json(m);
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			assert_rows_are_equal(whole, merged, i);
		assert_int_equal(json_integer_value(json_object_get(merged, "events")),
				 json_integer_value(json_object_get(whole, "events")));
		json_decref(whole);
		json_decref(merged);
	}
}

/* A merge can be merged again. */
static void a_merge_of_merges_is_a_merge(void **state _unused_)
{
	static struct work works[WORKS];
	_cleanup_(report_merge_freep) struct report_merge *once = NULL, *twice = NULL;
	_cleanup_buf_ struct buf all = BUF_INIT, out = BUF_INIT;
	json_t *a, *b;

	make_works(works, 9);
	report_on_works(works, WORKS, &all);
	assert_int_equal(report_merge_new(&once), 0);
	assert_int_equal(merge_text(once, all.data, "a", NULL), 0);
	assert_int_equal(report_merge_write(once, &(struct report_options){ .form = REPORT_JSON },
					    &out, NULL),
			 0);
	assert_int_equal(report_merge_new(&twice), 0);
	assert_int_equal(merge_text(twice, buf_string(&out), "b", NULL), 0);
	a = json_loads(buf_string(&out), 0, NULL);
	b = merged_json(twice);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_rows_are_equal(a, b, i);
	json_decref(a);
	json_decref(b);
}

#define HEAD "{\"format\":\"traced-report\",\"version\":1,\"clock\":\"boot\",\"reports\":["
#define KEY "{\"name\":\"task\",\"kind\":\"text\",\"adds\":\"key\"}"
#define SUM "{\"name\":\"total\",\"kind\":\"time\",\"adds\":\"sum\"}"
#define MAX_ "{\"name\":\"max\",\"kind\":\"time\",\"adds\":\"largest\"}"
#define MIN_ "{\"name\":\"total\",\"kind\":\"time\",\"adds\":\"smallest\"}"
#define DELAY "{\"name\":\"delay\",\"kind\":\"histogram\",\"adds\":\"histogram\"}"
#define AT "{\"name\":\"max-at\",\"kind\":\"at\",\"adds\":\"at\",\"of\":\"delay\"}"
#define PART                                                                                       \
	"{\"name\":\"part\",\"kind\":\"permille\",\"adds\":\"share\",\"of\":\"total\",\"same\":0}"
#define REPORT(columns, rows)                                                                      \
	"{\"name\":\"x\",\"by\":null,\"sort\":\"total\",\"columns\":[" columns "],\"rows\":[" rows \
	"],\"notes\":[\"said\\u001b[31m\"]}"
#define ONE(value, at)                                                                             \
	"{\"count\":1,\"sum_ns\":" #value ",\"min_ns\":" #value ",\"max_ns\":" #value              \
	",\"buckets\":[[" #value ",1]]},\"max_at_ns\":" #at

static void each_column_adds_in_its_way(void **state _unused_)
{
	static const char *const files[] = {
		HEAD REPORT(KEY "," SUM "," MAX_ "," DELAY "," AT "," PART,
			    "{\"task\":\"a\",\"total_ns\":50,\"max_ns\":10,\"part_permille\":7,"
			    "\"delay\":" ONE(9, 1000) "},"
						      "{\"task\":\"b\",\"total_ns\":null,"
						      "\"max_ns\":1,\"part_permille\":7,"
						      "\"delay\":" ONE(3, 1500) "}") "]}",
		HEAD REPORT(KEY "," SUM "," MAX_ "," DELAY "," AT "," PART,
			    "{\"task\":\"b\",\"total_ns\":5,\"max_ns\":2,\"more\":[{}],"
			    "\"part_permille\":7,\"delay\":" ONE(
				    3, 2500) "},"
					     "{\"total_ns\":150,"
					     "\"task\":\"a\",\"max_"
					     "ns\":20,\"part_"
					     "permille\":7,"
					     "\"delay\":" ONE(11, 2000) "}") "]"
									     "}",
	};
	_cleanup_(report_merge_freep) struct report_merge *m = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT;

	assert_int_equal(report_merge_new(&m), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;

		if (merge_text(m, files[i], i ? "2\n" : "1", &err) < 0)
			fail_msg("%s", err.message);
	}
	assert_int_equal(
		report_merge_write(m, &(struct report_options){ .form = REPORT_CSV }, &out, NULL),
		0);
	assert_string_equal(buf_string(&out),
			    "task,total_ns,max_ns,delay_avg_ns,delay_p50_ns,delay_p99_ns,"
			    "delay_max_ns,max_at_ns,part_permille\r\n"
			    "\"a\",200,20,10,9,11,11,2000,1000\r\n"
			    "\"b\",,2,3,3,3,3,1500,0\r\n");
	buf_clear(&out);
	assert_int_equal(report_merge_write(m, &(struct report_options){ 0 }, &out, NULL), 0);
	assert_non_null(strstr(buf_string(&out), "\n1: said\\x1b[31m\n2\\n: said\\x1b[31m\n"));
}

static void smallest_values_are_known_ones(void **state _unused_)
{
	static const char *const values[] = { "5", "null", "3", "4" };
	_cleanup_(report_merge_freep) struct report_merge *m = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT;
	char file[512];

	assert_int_equal(report_merge_new(&m), 0);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		snprintf(file, sizeof(file),
			 HEAD REPORT(KEY "," MIN_, "{\"task\":\"a\",\"total_ns\":%s},"
						   "{\"task\":\"b\",\"total_ns\":null}") "]}",
			 values[i]);
		assert_int_equal(merge_text(m, file, "x", NULL), 0);
	}
	assert_int_equal(
		report_merge_write(m, &(struct report_options){ .form = REPORT_CSV }, &out, NULL),
		0);
	assert_string_equal(buf_string(&out), "task,total_ns\r\n\"a\",3\r\n\"b\",\r\n");
}

#define EMPTY "\"delay\":{}}"

static void empty_distributions_add_to_others(void **state _unused_)
{
	static const char *const files[] = {
		HEAD REPORT(KEY "," SUM "," DELAY, "{\"task\":\"a\",\"total_ns\":1," EMPTY
						   ",{\"task\":\"b\",\"total_ns\":0," EMPTY) "]}",
		HEAD REPORT(KEY "," SUM "," DELAY,
			    "{\"task\":\"a\",\"total_ns\":1,\"delay\":{"
			    "\"count\":1,\"sum_ns\":9,\"min_ns\":9,\"max_ns\":"
			    "9,\"buckets\":[[9,1]]}}") "]}",
	};
	static const size_t order[] = { 0, 1, 1, 0 };
	_cleanup_(report_merge_freep) struct report_merge *m = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT;

	assert_int_equal(report_merge_new(&m), 0);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;

		if (merge_text(m, files[order[i]], "x", &err) < 0)
			fail_msg("%s", err.message);
	}
	assert_int_equal(
		report_merge_write(m, &(struct report_options){ .form = REPORT_JSON }, &out, NULL),
		0);
	assert_non_null(strstr(buf_string(&out), "\"count\":2,\"sum_ns\":18"));
	assert_non_null(strstr(buf_string(&out), "\"count\":0,\"sum_ns\":0"));
}

#define TID "{\"name\":\"tid\",\"kind\":\"number\",\"adds\":\"key\"}"
#define OWN_PART                                                                                   \
	"{\"name\":\"part\",\"kind\":\"permille\",\"adds\":\"share\",\"of\":\"total\",\"same\":2}"
#define THREAD(tid, total, value)                                                                  \
	"{\"task\":\"a\",\"tid\":" #tid ",\"total_ns\":" #total                                    \
	",\"part_permille\":7,\"delay\":" ONE(value, 1000) "}"
#define MACHINE(rows) HEAD REPORT(KEY "," TID "," SUM "," DELAY "," AT "," OWN_PART, rows) "]}"

static int take_sum(void *userdata, const char *report, const char *column,
		    const struct histogram *all)
{
	char *text = userdata;

	snprintf(text, 64, "%s %s %d %d", report, column, (int)all->count, (int)all->max);
	return 7;
}

/* A tid is another thread on each machine; what parts are of loses it, too. */
static void threads_of_machines_join_by_name(void **state _unused_)
{
	static const char *const files[] = {
		MACHINE(THREAD(1, 10, 3) "," THREAD(2, 20, 4)),
		MACHINE(THREAD(1, 30, 9)),
	};
	_cleanup_(report_merge_freep) struct report_merge *m = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT;
	size_t strings = 0;
	char sum[64] = "";
	int fd;

	assert_int_equal(report_merge_new(&m), 0);
	assert_int_equal(report_merge_visit(m, take_sum, sum), 0);
	report_merge_join_machines(m);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;

		/* A part of a file: something follows it. */
		buf_clear(&out);
		buf_printf(&out, "%s{", files[i]);
		fd = memory_file(out.data, out.len);
		if (report_merge_add_part(m, fd, strlen(files[i]), "x", &err) < 0)
			fail_msg("%s", err.message);
		close(fd);
		/* Further files take no further memory for what they have in common. */
		strings = strings ?: m->string_count;
	}
	assert_int_equal(m->string_count, strings);
	buf_clear(&out);
	assert_int_equal(
		report_merge_write(m, &(struct report_options){ .form = REPORT_CSV }, &out, NULL),
		0);
	assert_string_equal(buf_string(&out),
			    "task,total_ns,delay_avg_ns,delay_p50_ns,delay_p99_ns,delay_max_ns,"
			    "max_at_ns,part_permille\r\n\"a\",60,5,4,9,9,1000,1000\r\n");
	assert_int_equal(report_merge_visit(m, take_sum, sum), 7);
	assert_string_equal(sum, "x delay 3 9");
}

#define HIST(definition, rows, hits, dropped)                                                      \
	"{\"name\":\"hist kmem:kmalloc by bytes_req, call_site if comm ~ "                         \
	"\\\"<a*\\\"\",\"by\":null,\"sort\":null,"                                                 \
	"\"definition\":\"" definition                                                             \
	"\",\"columns\":[{\"name\":\"bytes_req\",\"kind\":\"number\","                             \
	"\"adds\":\"key\"},{\"name\":\"bytes_req-to\",\"kind\":\"number\",\"adds\":\"key\"},"      \
	"{\"name\":\"call_site.hex\",\"kind\":\"text\",\"adds\":\"key\"},{\"name\":\"hitcount\","  \
	"\"kind\":\"count\",\"adds\":\"sum\"},{\"name\":\"share\",\"kind\":\"bar\",\"adds\":"      \
	"\"share\","                                                                               \
	"\"of\":\"hitcount\",\"same\":0}],\"rows\":[" rows "],\"totals\":{\"hits\":" #hits         \
	",\"entries\":9,\"dropped\":" #dropped "},\"notes\":[]}"
#define BUCKET(from, to, site, hits)                                                               \
	"{\"bytes_req\":" #from ",\"bytes_req_to\":" #to ",\"call_site.hex\":\"" site              \
	"\",\"hitcount\":" #hits ",\"share_permille\":1}"
#define LOG2 "keys=bytes_req.log2,call_site.hex:vals=hitcount"

/* The buckets are the kernel's, so equal keys add up; only within one definition. */
static void histograms_of_the_kernel_add_up(void **state _unused_)
{
	_cleanup_(report_merge_freep) struct report_merge *m = NULL;
	json_t *document, *reports, *table;

	assert_int_equal(report_merge_new(&m), 0);
	assert_int_equal(
		merge_text(m,
			   HEAD HIST(LOG2, BUCKET(5, 8, "a", 3) "," BUCKET(9, 16, "a", 1), 4,
				     2) "," HIST(LOG2 " if x", BUCKET(5, 8, "a", 7), 7, 0) "]}",
			   "one", NULL),
		0);
	assert_int_equal(merge_text(m,
				    HEAD HIST(LOG2, BUCKET(9, 16, "b", 5) "," BUCKET(5, 8, "a", 1),
					      6, 3) "]}",
				    "two", NULL),
			 0);
	document = merged_json(m);
	reports = json_object_get(document, "reports");
	assert_int_equal(json_array_size(reports), 2);
	table = json_array_get(reports, 0);
	assert_string_equal(json_string_value(json_object_get(table, "definition")), LOG2);
	assert_int_equal(json_array_size(json_object_get(table, "rows")), 3);
	for (size_t i = 0; i < 3; i++) {
		static const struct {
			int from, hits, permille;
			const char *site;
		} wanted[] = { { 5, 4, 400, "a" }, { 9, 1, 100, "a" }, { 9, 5, 500, "b" } };
		json_t *row = json_array_get(json_object_get(table, "rows"), i);

		assert_int_equal(json_integer_value(json_object_get(row, "bytes_req")),
				 wanted[i].from);
		assert_string_equal(json_string_value(json_object_get(row, "call_site.hex")),
				    wanted[i].site);
		assert_int_equal(json_integer_value(json_object_get(row, "hitcount")),
				 wanted[i].hits);
		assert_int_equal(json_integer_value(json_object_get(row, "share_permille")),
				 wanted[i].permille);
	}
	table = json_object_get(table, "totals");
	assert_int_equal(json_integer_value(json_object_get(table, "hits")), 10);
	assert_int_equal(json_integer_value(json_object_get(table, "entries")), 3);
	assert_int_equal(json_integer_value(json_object_get(table, "dropped")), 5);
	table = json_array_get(reports, 1);
	assert_int_equal(json_array_size(json_object_get(table, "rows")), 1);
	json_decref(document);
}

#define EMPTY_ROWS 20000U
#define EMPTY_COLUMNS 12U

/* A file can have very many with a few bytes each. */
static void empty_distributions_are_not_kept(void **state _unused_)
{
	_cleanup_(report_merge_freep) struct report_merge *m = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;
	size_t before;

	buf_puts(&text, HEAD "{\"name\":\"x\",\"by\":null,\"sort\":null,\"columns\":[" KEY);
	for (unsigned i = 0; i < EMPTY_COLUMNS; i++)
		buf_printf(&text,
			   ",{\"name\":\"h%u\",\"kind\":\"histogram\",\"adds\":\"histogram\"}", i);
	buf_puts(&text, "],\"rows\":[");
	for (unsigned row = 0; row < EMPTY_ROWS; row++) {
		buf_printf(&text, "%s{\"task\":\"%u\"", row ? "," : "", row);
		for (unsigned i = 0; i < EMPTY_COLUMNS; i++)
			buf_printf(&text, ",\"h%u\":{}", i);
		buf_putc(&text, '}');
	}
	buf_puts(&text, "]}]}");
	assert_int_equal(report_merge_new(&m), 0);
	before = mallinfo2().uordblks;
	if (merge_text(m, buf_string(&text), "x", &err) < 0)
		fail_msg("%s", err.message);
	/* 65 bytes a row; with them over 800. */
	assert_true(mallinfo2().uordblks - before < (size_t)300 * EMPTY_ROWS);
}

#define ROW(task)                                                                                  \
	"{\"task\":\"" task "\",\"total_ns\":1,\"delay\":{\"count\":1,\"buckets\":[[0,1]]}}"
#define ROWS(rows) HEAD REPORT(KEY "," SUM "," DELAY, rows) "]}"

/* Bytes, and memory, of which the same rows again take none. */
static void files_are_bounded(void **state _unused_)
{
	_cleanup_(report_merge_freep) struct report_merge *m = NULL, *small = NULL, *brief = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	uint64_t one;

	assert_int_equal(report_merge_new(&m), 0);
	assert_int_equal(merge_text(m, ROWS(ROW("a")), "a", NULL), 0);
	one = report_merge_memory(m);
	assert_true(one > 100 && one < 1000);
	assert_int_equal(merge_text(m, ROWS(ROW("b")), "b", NULL), 0);
	assert_int_equal(report_merge_memory(m), 2 * one);
	/* Their notes alone are new. */
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(merge_text(m, ROWS(ROW("a")), "c", NULL), 0);
	assert_true(report_merge_memory(m) < 3 * one);

	assert_int_equal(report_merge_new(&small), 0);
	report_merge_bound(small, UINT64_MAX, 2 * one - 1);
	assert_int_equal(merge_text(small, ROWS(ROW("a")), "a", NULL), 0);
	assert_int_equal(merge_text(small, ROWS(ROW("b")), "b", &err), -EFBIG);
	assert_non_null(strstr(err.message, "b: its reports take more than"));

	assert_int_equal(report_merge_new(&brief), 0);
	report_merge_bound(brief, 2 * sizeof(ROWS(ROW("a"))) - 3, UINT64_MAX);
	assert_int_equal(merge_text(brief, ROWS(ROW("a")), "a", NULL), 0);
	assert_int_equal(merge_text(brief, ROWS(ROW("b")), "b", NULL), -EFBIG);
}

static void bad_files_are_refused(void **state _unused_)
{
	static const struct {
		int code;
		const char *text, *says;
	} cases[] = {
		{ -EBADMSG, "", "ends in the middle" },
		{ -EBADMSG, "TRACED", "not the beginning of a JSON value" },
		{ -EBADMSG, "[]", "it is no object" },
		{ -EBADMSG, "{}", "it has no reports" },
		{ -EBADMSG, "{\"traceEvents\":[{\"a\":1}]}", "it has no reports" },
		{ -EBADMSG, "{\"format\":\"other\"}", "another format" },
		{ -EINVAL, "{\"format\":\"traced-report\",\"version\":2}", "version 2" },
		{ -EBADMSG, "{\"reports\":[]}", "before the format" },
		{ -EBADMSG, HEAD "]", "ends in the middle" },
		{ -EINVAL,
		  "{\"format\":\"traced-report\",\"version\":1,\"clock\":\"mono\",\"reports\":[]}",
		  "on the clock mono, those before it on boot" },
		{ -EBADMSG, HEAD "{\"name\":\"x\"}]}", "no rows" },
		{ -EBADMSG, HEAD "{\"name\":\"x\",\"rows\":[]}]}", "no columns" },
		{ -EBADMSG, HEAD "{\"name\":\"\\u001b\",\"rows\":[]}]}", "without a valid name" },
		{ -EBADMSG, HEAD REPORT(KEY "," KEY, "") "]}", "column 2 of its report x" },
		{ -EBADMSG, HEAD REPORT("{\"name\":\"a\",\"kind\":\"color\"}", "") "]}",
		  "unknown kind" },
		{ -EBADMSG,
		  HEAD REPORT("{\"name\":\"a\",\"kind\":\"text\",\"adds\":\"sum\"}", "") "]}",
		  "column 1" },
		{ -EBADMSG, HEAD REPORT(AT, "") "]}", "column 1" },
		{ -EBADMSG, HEAD REPORT(KEY "," PART, "") "]}", "column 2" },
		{ -EINVAL,
		  HEAD REPORT("{\"name\":\"at\",\"kind\":\"at\",\"adds\":\"no\"}", "") "]}",
		  "can't be merged" },
		{ -EINVAL, HEAD REPORT(KEY, "") "]}", "other columns" },
		{ -EINVAL,
		  HEAD "{\"name\":\"x\",\"by\":\"cpu\",\"columns\":[" KEY "],\"rows\":[]}]}",
		  "a row by cpu, and that of a file before it by nothing" },
		{ -EBADMSG, HEAD REPORT(KEY "," SUM "," DELAY, "{\"task\":1}") "]}",
		  "expected a string" },
		{ -EBADMSG, HEAD REPORT(KEY "," SUM "," DELAY, "{\"task\":\"\"}") "]}",
		  "lacks a column" },
		{ -EBADMSG,
		  HEAD REPORT(KEY "," SUM "," DELAY, "{\"task\":\"\",\"task\":\"\"}") "]}",
		  "a member twice" },
		{ -EBADMSG, HEAD REPORT(KEY "," SUM "," DELAY, "{\"total_ns\":-1}") "]}",
		  "not a whole number" },
		{ -EBADMSG,
		  HEAD REPORT(KEY "," SUM "," DELAY, "{\"total_ns\":18446744073709551615}") "]}",
		  "not a whole number" },
		{ -EBADMSG,
		  HEAD REPORT(KEY "," SUM "," DELAY, "{\"delay\":{\"buckets\":[[3776,1]]}}") "]}",
		  "no such bucket" },
		{ -EBADMSG,
		  HEAD REPORT(KEY "," SUM "," DELAY,
			      "{\"delay\":{\"buckets\":[[2,1],[1,1]]}}") "]}",
		  "no such bucket" },
		{ -EBADMSG,
		  HEAD REPORT(KEY "," SUM "," DELAY,
			      "{\"delay\":{\"count\":2,\"buckets\":[[2,1]]}}") "]}",
		  "an invalid distribution" },
		{ -EBADMSG,
		  HEAD REPORT(KEY "," SUM "," DELAY, "") "," REPORT(KEY "," SUM "," DELAY, "") "]}",
		  "has the report x twice" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(report_merge_freep) struct report_merge *m = NULL;
		_cleanup_error_ struct error err = ERROR_INIT;
		int r;

		assert_int_equal(report_merge_new(&m), 0);
		assert_int_equal(
			merge_text(m, HEAD REPORT(KEY "," SUM "," DELAY, "") "]}", "good", &err),
			0);
		r = merge_text(m, cases[i].text, "bad", &err);
		if (r != cases[i].code || !strstr(err.message ?: "", cases[i].says) ||
		    strncmp(err.message, "bad: ", 5) != 0)
			fail_msg("%s: %d, %s", cases[i].text, r, err.message ?: "-");
	}
}

static void a_report_in_some_files_is_noted(void **state _unused_)
{
	_cleanup_(report_merge_freep) struct report_merge *m = NULL;
	_cleanup_export_result_ struct export_result told = { 0 };
	_cleanup_buf_ struct buf out = BUF_INIT;

	assert_int_equal(report_merge_new(&m), 0);
	assert_int_equal(merge_text(m, HEAD REPORT(KEY "," SUM, "") "]}", "a", NULL), 0);
	assert_int_equal(merge_text(m, HEAD "],\"lost\":5,\"incomplete\":true,\"marks_lost\":true}",
				    "b", NULL),
			 0);
	assert_int_equal(report_merge_write(m, &(struct report_options){ 0 }, &out, NULL), 0);
	assert_non_null(strstr(buf_string(&out), "only 1 of 2 files have this report\n"));
	assert_int_equal(report_merge_tell(m, &told), 0);
	assert_int_equal(told.lost, 5);
	assert_true(told.incomplete && told.marks_lost);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_equal_the_whole),
		cmocka_unit_test(a_merge_of_merges_is_a_merge),
		cmocka_unit_test(each_column_adds_in_its_way),
		cmocka_unit_test(smallest_values_are_known_ones),
		cmocka_unit_test(threads_of_machines_join_by_name),
		cmocka_unit_test(empty_distributions_add_to_others),
		cmocka_unit_test(empty_distributions_are_not_kept),
		cmocka_unit_test(histograms_of_the_kernel_add_up),
		cmocka_unit_test(files_are_bounded),
		cmocka_unit_test(bad_files_are_refused),
		cmocka_unit_test(a_report_in_some_files_is_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
