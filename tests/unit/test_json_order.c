/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For a function tracer's recording the JSON has traceEvents first and the kernel's text after it.
 * Nothing else differs, and the bytes are the same for any number of threads.
 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "exported.h"
#include "formats/formats.h"
#include "formats/html/html.h"
#include "formats/json/mend.h"
#include "make_formats.h"
#include "make_stream.h"
#include "memory_file.h"
#include "occurrences.h"

#define START UINT64_C(100000000000)
#define PAGES 300 /* of each CPU */
#define PAGE_EVENTS 60
#define KERNEL UINT64_C(0xffffffff81000000)

static void by_no_tracer(Traced__Capture__Header *h)
{
	h->tracer = (char *)"nop";
}

static void by_function(Traced__Capture__Header *h)
{
	h->tracer = (char *)"function";
}

static void by_function_graph(Traced__Capture__Header *h)
{
	h->tracer = (char *)"function_graph";
}

static void put_hit(struct maker *m, uint64_t ts, int32_t pid, uint64_t i)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	maker_u64(m, &b, KERNEL + i % 7 * 64);
	maker_u64(m, &b, KERNEL + i % 5 * 64 + 8);
	maker_event(m, ts, ID_FUNCTION, pid, b.data, b.len);
}

static void put_graph(struct maker *m, uint64_t ts, int32_t pid, uint64_t i)
{
	uint64_t func = KERNEL + i / 2 % 7 * 64;

	if (i % 2)
		event_graph_exit(m, ts, pid, func, 0, 0, ts - 50, ts);
	else
		event_graph_entry(m, ts, pid, func, 0);
}

/* Events of every kind that has its own place in the JSON, or state shared with others. */
static void put_event(struct maker *m, uint64_t ts, uint64_t i)
{
	static const char *const marks[] = {
		"B|70|slice",
		"I|70|an \"instant\"",
		"E|70",
		"free text",
		"G|70|track|work|12",
		"H|70|track|12",
		"trace_event_clock_sync: name=one",
		"B|70|</script><script>",
		"I|70|</script>",
		"E|70",
	};
	int32_t pid = (int32_t)(i % 11); /* 0: the idle task's */

	if (i % 50 == 7)
		event_switch(m, ts, pid, "this", 0, 120, pid + 1, "that");
	else if (i % 97 == 5)
		event_print_mark(m, ts, pid, marks[i / 97 % ARRAY_SIZE(marks)]);
	else if (i / 1000 % 3 == 2)
		put_graph(m, ts, 20, i);
	else
		put_hit(m, ts, pid, i);
}

static void make_capture(struct maker *m, void (*header)(Traced__Capture__Header *h))
{
	struct maker_task tasks[10];
	char names[10][16];

	maker_init(m, 8, false, 4096);
	m->header = header;
	maker_head(m);
	maker_function_format(m);
	maker_graph_formats(m);
	maker_symbols(
		m, "ffffffff81000000 T plain\n"
		   "ffffffff81000040 T in_a_module\t[the_module]\n"
		   "ffffffff81000080 T with\"quote\n"
		   "ffffffff810000c0 T with\\backslash\n"
		   "ffffffff81000100 T a_name_that_is_longer_than_what_is_kept_of_most_names_is\n"
		   "ffffffff81000140 T last\n"
		   "ffffffff81000180 T end\n");
	for (int32_t i = 0; i < 10; i++) {
		snprintf(names[i], sizeof(names[i]), "task-%d", i + 1);
		tasks[i] = (struct maker_task){ .tid = i + 1, .tgid = 1, .comm = names[i] };
	}
	maker_tasks(m, START, 0, tasks, ARRAY_SIZE(tasks));
	for (uint64_t p = 0; p < PAGES; p++) {
		for (uint32_t cpu = 0; cpu < 2; cpu++) {
			page_begin(m, START + p * PAGE_EVENTS * 100);
			for (uint64_t i = p * PAGE_EVENTS; i < (p + 1) * PAGE_EVENTS; i++)
				put_event(m, START + i * 100 + cpu, i + cpu * 13);
			page_flush(m, p % 29 == 3 ? p : p % 31 == 3 ? UINT64_MAX : 0, cpu);
		}
		if (p % 17 == 0)
			assert_int_equal(stream_write(&m->writer, CHUNK_FLUSH, "", 0), 0);
	}
	maker_end(m);
}

static void convert(const struct maker *m, const struct export_options *o, struct buf *out)
{
	_cleanup_exported_ struct exported e = { .options = *o };

	for (size_t i = 0; i < o->merge_count; i++)
		assert_int_equal(lseek(o->merges[i].fd, 0, SEEK_SET), 0);
	export_whole(&e, m->fd);
	assert_int_equal(e.result.events, 2 * PAGES * PAGE_EVENTS);
	buf_deinit(out);
	*out = e.file;
	e.file = BUF_INIT;
}

static bool is_phase(const json_t *e, char phase)
{
	return *json_string_value(json_object_get(e, "ph")) == phase;
}

/*
 * The events without metadata and ties of clocks, in their order; or the metadata, whose order does
 * not matter.
 */
static json_t *pick(const json_t *events, bool metadata)
{
	json_t *picked = json_array(), *e;
	size_t i;

	json_array_foreach((json_t *)events, i, e)
	{
		if (is_phase(e, 'M') == metadata && !is_phase(e, 'c'))
			json_array_append(picked, e);
	}
	return picked;
}

static bool has(const json_t *all, const json_t *one)
{
	json_t *e;
	size_t i;

	json_array_foreach((json_t *)all, i, e)
	{
		if (json_equal(e, one))
			return true;
	}
	return false;
}

static void assert_same_elements(const json_t *a, const json_t *b)
{
	json_t *left = pick(a, false), *right = pick(b, false);

	assert_true(json_array_size(left) > 1000);
	assert_true(json_equal(left, right));
	json_decref(left);
	json_decref(right);
}

static size_t count_syncs(const json_t *events)
{
	size_t i, n = 0;
	json_t *e;

	json_array_foreach((json_t *)events, i, e) n += is_phase(e, 'c');
	return n;
}

static void assert_same_events(const json_t *a, const json_t *b)
{
	json_t *left = pick(a, true), *right = pick(b, true), *e;
	size_t i;

	assert_same_elements(a, b);
	assert_int_equal(count_syncs(a), 1);
	assert_int_equal(count_syncs(b), 1);
	assert_true(json_array_size(left) > 10);
	assert_int_equal(json_array_size(left), json_array_size(right));
	json_array_foreach(left, i, e) assert_true(has(right, e));
	json_decref(left);
	json_decref(right);
}

/* The same members, in any order. */
static void assert_same_trace(const struct buf *a, const struct buf *b)
{
	json_t *left = json_loadb(a->data, a->len, 0, NULL);
	json_t *right = json_loadb(b->data, b->len, 0, NULL), *value;
	const char *key;

	assert_non_null(left);
	assert_non_null(right);
	assert_true(json_object_size(left) > 4);
	assert_int_equal(json_object_size(left), json_object_size(right));
	json_object_foreach(left, key, value)
	{
		if (!strcmp(key, "traceEvents"))
			assert_same_events(value, json_object_get(right, key));
		else if (strcmp(key, "otherData") != 0 &&
			 !json_equal(value, json_object_get(right, key)))
			fail_msg("%s differs", key);
	}
	json_decref(left);
	json_decref(right);
}

static void assert_head(const struct buf *file, const char *head)
{
	assert_true(file->len > strlen(head));
	assert_memory_equal(file->data, head, strlen(head));
}

/* One thread's output of o and the first capture is the reference; all other outputs equal it. */
static void assert_orders(const struct export_options *o)
{
	static const unsigned threads[] = { 1, 2, 5 };
	_cleanup_(maker_deinit) struct maker plain, traced, graph;
	_cleanup_buf_ struct buf text_first = BUF_INIT, events_first = BUF_INIT, other = BUF_INIT;
	struct export_options each = *o;

	make_capture(&plain, by_no_tracer);
	make_capture(&traced, by_function);
	make_capture(&graph, by_function_graph);
	each.threads = 1;
	convert(&plain, &each, &text_first);
	assert_head(&text_first, JSON_TEXT_HEAD "# tracer: nop\\n");
	convert(&traced, &each, &events_first);
	assert_head(&events_first, JSON_EVENTS_HEAD);
	assert_same_trace(&text_first, &events_first);
	convert(&graph, &each, &other);
	assert_head(&other, JSON_EVENTS_HEAD);
	assert_same_trace(&text_first, &other);
	for (size_t i = 1; i < ARRAY_SIZE(threads); i++) {
		each.threads = threads[i];
		convert(&traced, &each, &other);
		assert_int_equal(other.len, events_first.len);
		assert_memory_equal(other.data, events_first.data, other.len);
		convert(&plain, &each, &other);
		assert_int_equal(other.len, text_first.len);
		assert_memory_equal(other.data, text_first.data, other.len);
	}
}

static void only_the_order_differs(void **state _unused_)
{
	assert_orders(&(struct export_options){ .format = "json" });
	assert_orders(
		&(struct export_options){ .format = "json", .function_view = FUNCTION_SLICES });
}

/* Marks of another file, samples and their frames come after either. */
static void merged_marks_differ_in_order_only(void **state _unused_)
{
	static const char file[] =
		"{\"traceEvents\":["
		"{\"name\":\"own\",\"ph\":\"X\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":100000010,"
		"\"dur\":5,\"sf\":\"7\"},"
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":2,"
		"\"args\":{\"name\":\"mine\"}}],"
		"\"stackFrames\":{\"7\":{\"name\":\"main\",\"category\":\"app\"}},"
		"\"samples\":[{\"cpu\":0,\"tid\":2,\"ts\":100000020,\"name\":\"cycles\","
		"\"sf\":\"7\",\"weight\":1}]}";
	_cleanup_close_ int fd = memory_file(file, strlen(file));
	const struct export_merge merge = { .fd = fd,
					    .name = "own.json",
					    .clock = MERGE_CLOCK_TRACE };

	assert_orders(
		&(struct export_options){ .format = "json", .merges = &merge, .merge_count = 1 });
}

/* A block of a page; its first line occurs once. */
static void take_block(const struct buf *page, const char *begin, const char *end, struct buf *out)
{
	const char *from, *to;

	from = memmem(page->data, page->len, begin, strlen(begin));
	assert_non_null(from);
	from += strlen(begin);
	assert_null(memmem(from, page->len - (size_t)(from - page->data), begin, strlen(begin)));
	to = memmem(from, page->len - (size_t)(from - page->data), end, strlen(end));
	assert_non_null(to);
	buf_append(out, from, (size_t)(to - from));
}

static void join_elements(struct buf *b)
{
	const size_t len = strlen(HTML_MORE_NEXT);

	for (char *p = b->data;
	     (p = memmem(p, b->len - (size_t)(p - b->data), HTML_MORE_NEXT, len));)
		buf_replace(b, (size_t)(p - b->data), len, "", 0);
}

static void assert_same_pages(const struct buf *a, const struct buf *b)
{
	_cleanup_buf_ struct buf left = BUF_INIT, right = BUF_INIT;

	take_block(a, HTML_TEXT_BEGIN, HTML_BLOCK_END, &left);
	take_block(b, HTML_TEXT_BEGIN, HTML_BLOCK_END, &right);
	assert_int_equal(left.len, right.len);
	assert_memory_equal(left.data, right.data, left.len);
	assert_null(memmem(left.data, left.len, "</script", 8));
	buf_clear(&left);
	buf_clear(&right);
	buf_puts(&left, "{\"form\":1");
	buf_puts(&right, "{\"form\":1");
	take_block(a, HTML_MORE_BEGIN, HTML_BLOCK_END, &left);
	take_block(b, HTML_MORE_BEGIN, HTML_BLOCK_END, &right);
	join_elements(&left);
	join_elements(&right);
	assert_null(memchr(left.data, '<', left.len));
	assert_null(memchr(right.data, '<', right.len));
	assert_same_trace(&left, &right);
}

/* The same for the blocks of a page. */
static void pages_differ_in_order_only(void **state _unused_)
{
	struct export_options o = { .format = "html", .threads = 1 };
	_cleanup_buf_ struct buf text_first = BUF_INIT, events_first = BUF_INIT, other = BUF_INIT;
	_cleanup_(maker_deinit) struct maker plain, traced;
	const char *end;

	make_capture(&plain, by_no_tracer);
	make_capture(&traced, by_function);
	convert(&plain, &o, &text_first);
	convert(&traced, &o, &events_first);
	assert_true(strstr(text_first.data, HTML_TEXT_BEGIN) <
		    strstr(text_first.data, HTML_MORE_BEGIN));
	assert_true(strstr(events_first.data, HTML_TEXT_BEGIN) >
		    strstr(events_first.data, HTML_MORE_BEGIN));
	assert_same_pages(&text_first, &events_first);
	end = events_first.data + events_first.len - strlen(HTML_END);
	assert_string_equal(end, HTML_END);
	o.threads = 3;
	convert(&traced, &o, &other);
	assert_int_equal(other.len, events_first.len);
	assert_memory_equal(other.data, events_first.data, other.len);
}

/* An array has the object's elements, but no text, and so no tie. */
static void an_array_has_the_elements(void **state _unused_)
{
	struct export_options o = { .format = "json", .threads = 2 };
	_cleanup_buf_ struct buf file = BUF_INIT, array = BUF_INIT;
	_cleanup_(maker_deinit) struct maker m;
	json_t *object, *events;

	make_capture(&m, by_function);
	convert(&m, &o, &file);
	o.json_array = true;
	convert(&m, &o, &array);
	object = json_loadb(file.data, file.len, 0, NULL);
	events = json_loadb(array.data, array.len, 0, NULL);
	assert_non_null(object);
	assert_true(json_is_array(events));
	assert_same_elements(json_object_get(object, "traceEvents"), events);
	assert_int_equal(count_syncs(events), 0);
	json_decref(object);
	json_decref(events);
}

/* While it is written, it has everything so far except the text. */
static void followed_elements_are_written_at_once(void **state _unused_)
{
	_cleanup_close_ int to = memory_file("", 0);
	struct feed feed = { .to = to, .seed = 1, .slice_max = 50000 };
	const struct export_follow follow = { .wait = give_slice, .userdata = &feed };
	struct export_options o = { .format = "json" };
	_cleanup_buf_ struct buf whole = BUF_INIT, followed = BUF_INIT, cut = BUF_INIT;
	_cleanup_close_ int out = memory_file("", 0);
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_(maker_deinit) struct maker m;
	struct maker fed;

	make_capture(&m, by_function);
	convert(&m, &o, &whole);
	feed_begin(&feed, m.fd);
	o.follow = &follow;
	fed = (struct maker){ .fd = to };
	convert(&fed, &o, &followed);
	assert_head(&followed, JSON_EVENTS_HEAD);
	assert_same_trace(&whole, &followed);
	/* The recorder dies. */
	assert_int_equal(ftruncate(to, 0), 0);
	feed = (struct feed){ .to = to, .seed = 1, .slice_max = 50000, .dies_at = 60 };
	feed_begin(&feed, m.fd);
	assert_int_equal(export_stream(to, out, &o, &result, NULL), -EIO);
	memory_file_read(out, &cut);
	assert_head(&cut, JSON_EVENTS_HEAD);
	assert_true((double)cut.len / (double)whole.len >
		    (double)feed.given / (double)feed.size * 0.75);
}

static void assert_closed_when_full(void (*header)(Traced__Capture__Header *h),
				    enum function_view view)
{
	_cleanup_close_ int to = memory_file("", 0);
	struct feed feed = { .to = to, .seed = 1, .slice_max = 50000 };
	const struct export_follow follow = { .wait = give_slice, .userdata = &feed };
	_cleanup_exported_ struct exported e = { .options = { .format = "json",
							      .follow = &follow,
							      .function_view = view,
							      .json_string_max = 300000 } };
	_cleanup_(maker_deinit) struct maker m;
	json_t *json;

	make_capture(&m, header);
	feed_begin(&feed, m.fd);
	export_whole(&e, to);
	assert_true(e.result.incomplete);
	assert_in_range(e.result.events, 500, PAGES * PAGE_EVENTS);
	assert_in_range(e.file.len, 250000, 400000);
	json = json_loadb(e.file.data, e.file.len, 0, NULL);
	assert_non_null(json);
	json_decref(json);
}

/* An unfinished recording's output may be the only copy, whichever event exceeded the limit. */
static void a_full_followed_json_is_closed(void **state _unused_)
{
	assert_closed_when_full(by_function, FUNCTION_INSTANTS);
	assert_closed_when_full(by_function, FUNCTION_SLICES);
	assert_closed_when_full(by_function_graph, FUNCTION_INSTANTS);
	assert_closed_when_full(by_no_tracer, FUNCTION_INSTANTS);
	assert_closed_when_full(by_no_tracer, FUNCTION_SLICES);
}

/* The limit counts elements and text together, in either order. */
static void too_long_files_are_refused(void **state _unused_)
{
	struct export_options o = { .format = "json" };
	_cleanup_buf_ struct buf file = BUF_INIT;
	_cleanup_(maker_deinit) struct maker m;

	make_capture(&m, by_function);
	convert(&m, &o, &file);
	o.json_string_max = file.len;
	for (o.threads = 1; o.threads <= 3; o.threads++)
		convert(&m, &o, &file);
	o.json_string_max = file.len / 2;
	for (o.threads = 1; o.threads <= 3; o.threads++) {
		_cleanup_exported_ struct exported e = { .options = o };

		try_export(&e, m.fd);
		assert_int_equal(e.code, -EOVERFLOW);
		assert_non_null(strstr(e.err.message, "a viewer can open"));
		assert_non_null(e.err.hint);
	}
}

struct counts {
	uint64_t events, lines, instants;
};

static void count_segment(const char *data, size_t len, struct counts *c)
{
	json_t *json = json_loadb(data, len, JSON_REJECT_DUPLICATES, NULL), *e;
	const char *text = json_string_value(json_object_get(json, "systemTraceEvents"));
	size_t i;

	assert_non_null(text);
	c->events += (uint64_t)json_integer_value(
		json_object_get(json_object_get(json, "otherData"), "events"));
	/* Not marks: the first sync of a file is one line, others are two. */
	c->lines += occurrences(text, "\n") - occurrences(text, "\n#") - 1 -
		    occurrences(text, "tracing_mark_write: ");
	json_array_foreach(json_object_get(json, "traceEvents"), i, e) c->instants +=
		is_phase(e, 'i');
	json_decref(json);
}

static struct counts count_segments(const struct exported *e)
{
	const struct export_result *r = &e->result;
	struct counts c = { 0 };
	uint64_t at = 0;

	for (size_t i = 0; i <= r->segment_count; i++) {
		uint64_t end = i < r->segment_count ? r->segment_ends[i] : r->bytes;

		count_segment(e->file.data + at, end - at, &c);
		at = end;
	}
	return c;
}

/* Each event is in one segment, however many threads render it and wherever they are cut. */
static void threads_render_several_segments(void **state _unused_)
{
	static void (*const headers[])(Traced__Capture__Header * h) = { by_no_tracer, by_function,
									by_function_graph };

	for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
		struct export_options o = { .format = "json" };
		_cleanup_exported_ struct exported whole = { .options = o };
		_cleanup_(maker_deinit) struct maker m;
		struct counts all;

		make_capture(&m, headers[i]);
		export_whole(&whole, m.fd);
		all = count_segments(&whole);
		assert_int_equal(all.events, 2 * PAGES * PAGE_EVENTS);
		o.segments = true;
		o.json_string_max = whole.file.len / 8;
		for (o.threads = 1; o.threads <= 5; o.threads += 2) {
			_cleanup_exported_ struct exported e = { .options = o };
			struct counts c;

			export_whole(&e, m.fd);
			assert_in_range(e.result.segment_count, 1, 10);
			c = count_segments(&e);
			assert_int_equal(c.events, all.events);
			assert_int_equal(c.lines, all.lines);
			assert_int_equal(c.instants, all.instants);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_order_differs),
		cmocka_unit_test(merged_marks_differ_in_order_only),
		cmocka_unit_test(pages_differ_in_order_only),
		cmocka_unit_test(an_array_has_the_elements),
		cmocka_unit_test(followed_elements_are_written_at_once),
		cmocka_unit_test(a_full_followed_json_is_closed),
		cmocka_unit_test(too_long_files_are_refused),
		cmocka_unit_test(threads_render_several_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
