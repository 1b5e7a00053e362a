/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The function tracers' events in the JSON, read as trace processor reads them: sorted by time; of
 * equal times ends first, then complete slices by falling length, then begins. The result must
 * agree with the file's order and with the kernel's text.
 */
#include <dirent.h>
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
#include "fixture.h"
#include "formats/formats.h"
#include "make_formats.h"
#include "make_stream.h"
#include "occurrences.h"

#define DEPTH_MAX 256

struct slice {
	char phase;
	int64_t tid, ts, dur; /* ns; dur -1: not known yet */
	const char *name;
	const json_t *args;
	size_t index;	 /* in the file */
	unsigned begins; /* open slices around it, by the file's order */
	unsigned depth;	 /* as read */
};

struct trace {
	json_t *json;
	struct slice *events;
	size_t count;
};

static void trace_deinit(struct trace *t)
{
	json_decref(t->json);
	free(t->events);
}
#define _cleanup_trace_ _cleanup_(trace_deinit)

static int64_t ns(const json_t *v)
{
	assert_true(json_is_number(v));
	return (int64_t)(json_number_value(v) * 1000 + 0.5);
}

static int64_t key(const struct slice *s)
{
	return s->phase == 'E' ? INT64_MIN : s->phase == 'X' ? INT64_MAX - s->dur : INT64_MAX;
}

static int by_thread_and_time(const void *left, const void *right)
{
	const struct slice *a = left, *b = right;

#define ORDER(x, y)                                                                                \
	if ((x) != (y))                                                                            \
	return (x) < (y) ? -1 : 1
	ORDER(a->tid, b->tid);
	ORDER(a->ts, b->ts);
	ORDER(key(a), key(b));
	ORDER(a->index, b->index);
#undef ORDER
	return 0;
}

/* Elements of traceEvents that make slices, in the file's order. */
static void load(struct trace *t, const char *text, size_t len)
{
	json_error_t error;
	json_t *all, *e;
	size_t i;

	t->json = json_loadb(text, len, 0, &error);
	if (!t->json)
		fail_msg("line %d: %s", error.line, error.text);
	all = json_object_get(t->json, "traceEvents");
	t->events = calloc(json_array_size(all) + 1, sizeof(*t->events));
	assert_non_null(t->events);
	json_array_foreach(all, i, e)
	{
		const char *phase = json_string_value(json_object_get(e, "ph"));
		struct slice *s = &t->events[t->count];

		if (!strchr("BEXi", *phase))
			continue;
		assert_true(json_is_integer(json_object_get(e, "pid")));
		*s = (struct slice){
			.phase = *phase,
			.tid = json_integer_value(json_object_get(e, "tid")),
			.ts = ns(json_object_get(e, "ts")),
			.dur = *phase == 'X' ? ns(json_object_get(e, "dur")) : -1,
			.name = json_string_value(json_object_get(e, "name")),
			.args = json_object_get(e, "args"),
			.index = t->count++,
		};
		assert_non_null(s->name);
	}
}

/* The depth of each slice, by the file's order alone. */
static void count_begins(struct trace *t)
{
	for (size_t i = 0; i < t->count; i++) {
		struct slice *s = &t->events[i];

		for (size_t j = i; j-- > 0;) {
			if (t->events[j].tid != s->tid || t->events[j].phase == 'X' ||
			    t->events[j].phase == 'i')
				continue;
			s->begins = t->events[j].begins + (t->events[j].phase == 'B');
			break;
		}
		if (s->phase == 'E') {
			assert_true(s->begins > 0);
			s->begins--;
		}
	}
}

/*
 * Reads one thread's events, sorted: fails if a slice is not within the one around it, or not open.
 */
static void nest(struct slice *events, size_t count)
{
	struct slice *stack[DEPTH_MAX];
	unsigned depth = 0, begins = 0;

	for (size_t i = 0; i < count; i++) {
		struct slice *s = &events[i];

		while (depth && stack[depth - 1]->dur >= 0 &&
		       stack[depth - 1]->ts + stack[depth - 1]->dur <= s->ts) {
			begins -= stack[depth - 1]->phase == 'B';
			depth--;
		}
		if (s->phase == 'i')
			continue;
		if (s->phase == 'E') {
			if (!depth || stack[depth - 1]->phase != 'B')
				fail_msg("an end at %lld in the midst of another slice",
					 (long long)s->ts);
			assert_true(s->ts > stack[depth - 1]->ts);
			assert_string_equal(s->name, stack[depth - 1]->name);
			assert_int_equal(s->begins, begins - 1);
			stack[depth - 1]->dur = s->ts - stack[depth - 1]->ts;
			if (s->args)
				stack[depth - 1]->args = s->args;
			begins--;
			depth--;
			continue;
		}
		if (s->begins != begins)
			fail_msg("%s at %lld is in %u functions, not %u", s->name, (long long)s->ts,
				 begins, s->begins);
		for (unsigned j = 0; j < depth; j++)
			assert_true(stack[j]->dur < 0 ||
				    s->ts + MAX(s->dur, 0) <= stack[j]->ts + stack[j]->dur);
		s->depth = depth;
		assert_true(depth < DEPTH_MAX);
		stack[depth++] = s;
		begins += s->phase == 'B';
	}
	assert_int_equal(begins, 0);
}

static void read_slices(struct trace *t, const char *text, size_t len)
{
	load(t, text, len);
	count_begins(t);
	qsort(t->events, t->count, sizeof(*t->events), by_thread_and_time);
	for (size_t i = 0, n; i < t->count; i += n) {
		for (n = 1; i + n < t->count && t->events[i + n].tid == t->events[i].tid; n++)
			;
		nest(t->events + i, n);
	}
}

/* Entries of a graph in the kernel's text: "| name() {" and "| name();". */
static size_t count_entries(const char *text, const char *name)
{
	char open[300], leaf[300];

	snprintf(open, sizeof(open), " %s() {", name);
	snprintf(leaf, sizeof(leaf), " %s();", name);
	return occurrences(text, open) + occurrences(text, leaf);
}

/* Counts each name once: there are far fewer names than slices. */
static bool seen_before(const struct trace *t, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (t->events[j].phase != 'E' && !strcmp(t->events[j].name, t->events[i].name) &&
		    !json_object_get(t->events[j].args, "entry"))
			return true;
	return false;
}

static void check_graph(const char *kernel, const char *name)
{
	const struct export_options options = { .format = "json" };
	_cleanup_buf_ struct buf text = BUF_INIT, file = BUF_INIT;
	_cleanup_trace_ struct trace t = { 0 };
	char path[512];
	size_t entries = 0, in_text;

	snprintf(path, sizeof(path), TEST_DATA "/%s/%s.txt.gz", kernel, name);
	fixture_read_gz(path, &text);
	snprintf(path, sizeof(path), TEST_DATA "/%s/%s.traced.gz", kernel, name);
	fixture_export(path, &options, &file);
	read_slices(&t, file.data, file.len);
	for (size_t i = 0; i < t.count; i++) {
		const struct slice *s = &t.events[i];
		unsigned same = 0;

		if (s->phase == 'E' || json_object_get(s->args, "entry"))
			continue;
		entries++;
		if (seen_before(&t, i))
			continue;
		for (size_t j = 0; j < t.count; j++)
			same += t.events[j].phase != 'E' && !strcmp(t.events[j].name, s->name) &&
				!json_object_get(t.events[j].args, "entry");
		if (same != count_entries(text.data, s->name))
			fail_msg("%s/%s: %s is there %u times, not %zu", kernel, name, s->name,
				 same, count_entries(text.data, s->name));
	}
	in_text = occurrences(text.data, "() {\n") + occurrences(text.data, "();\n");
	assert_int_equal(entries, in_text);
	assert_true(entries > 20);
}

static void recorded_graphs_are_as_in_the_text(void **state _unused_)
{
	DIR *data = opendir(TEST_DATA);
	unsigned kernels = 0;
	struct dirent *e;

	assert_non_null(data);
	while ((e = readdir(data))) {
		char path[400];

		snprintf(path, sizeof(path), TEST_DATA "/%s/graph.traced.gz", e->d_name);
		if (access(path, R_OK) < 0)
			continue;
		check_graph(e->d_name, "graph");
		check_graph(e->d_name, "graph-all");
		check_graph(e->d_name, "graph-times");
		kernels++;
	}
	closedir(data);
	assert_true(kernels >= 3);
}

enum { OUTER = 0x1000, MIDDLE = 0x2000, LEAF = 0x3000, IRQ = 0x4000 };

/* The tests' second run: elements are then written as they come, and otherwise after the text. */
static bool elements_first;

static void by_tracer(Traced__Capture__Header *h)
{
	h->tracer = (char *)(elements_first ? "function_graph" : "nop");
}

static void make_functions(struct maker *m)
{
	maker_init(m, 8, false, 4096);
	m->header = by_tracer;
	maker_head(m);
	maker_function_format(m);
	maker_graph_formats(m);
	maker_symbols(m, "0000000000001000 T outer\n"
			 "0000000000002000 T middle\n"
			 "0000000000003000 T leaf\n"
			 "0000000000004000 T irq\n"
			 "0000000000005000 T end\n");
}

static void hit(struct maker *m, uint64_t ts, int32_t pid, uint64_t ip, uint64_t parent)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	maker_u64(m, &b, ip);
	maker_u64(m, &b, parent);
	maker_event(m, ts, ID_FUNCTION, pid, b.data, b.len);
}

static void leave(struct maker *m, uint64_t ts, int32_t pid, uint64_t func, uint32_t depth,
		  uint64_t took)
{
	event_graph_exit(m, ts, pid, func, depth, 0, ts - took, ts);
}

static void put_args(struct buf *out, const json_t *args)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)args, name, v)
	{
		if (json_is_object(v)) {
			buf_printf(out, " %s{", name);
			put_args(out, v);
			buf_puts(out, " }");
		} else if (json_is_integer(v))
			buf_printf(out, " %s=%lld", name, (long long)json_integer_value(v));
		else
			buf_printf(out, " %s=%s", name, json_string_value(v));
	}
}

/* A line for each slice and instant: "TID TS+DUR NAME ARGS", indented. */
static void describe(const struct trace *t, struct buf *out)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct slice *s = &t->events[i];

		if (s->phase == 'E')
			continue;
		buf_printf(out, "%lld %*s%lld", (long long)s->tid, (int)s->depth * 2, "",
			   (long long)s->ts);
		if (s->phase != 'i')
			buf_printf(out, "+%lld", (long long)s->dur);
		buf_printf(out, " %s", s->name);
		put_args(out, s->args);
		buf_putc(out, '\n');
	}
}

/* Ends the capture, whose records are on one page of CPU 0. */
static void assert_slices(struct maker *m, uint64_t missed, enum function_view view,
			  const char *expected)
{
	_cleanup_exported_ struct exported e = {
		.options = { .format = "json", .function_view = view },
	};
	_cleanup_buf_ struct buf found = BUF_INIT;
	_cleanup_trace_ struct trace t = { 0 };

	page_flush(m, missed, 0);
	maker_end(m);
	export_whole(&e, m->fd);
	read_slices(&t, e.file.data, e.file.len);
	describe(&t, &found);
	assert_string_equal(buf_string(&found), expected);
	maker_deinit(m);
}

static void a_graph_is_slices(void **state _unused_)
{
	struct maker m;

	make_functions(&m);
	page_begin(&m, 10000);
	event_graph_entry(&m, 10000, 7, OUTER, 0);
	event_graph_entry(&m, 10100, 7, LEAF, 1);
	leave(&m, 10200, 7, LEAF, 1, 60);
	event_graph_entry(&m, 10300, 7, MIDDLE, 1);
	event_graph_entry(&m, 10400, 7, LEAF, 2);
	leave(&m, 10450, 7, LEAF, 2, 50);
	leave(&m, 10500, 7, MIDDLE, 1, 180);
	leave(&m, 10900, 7, OUTER, 0, 890);
	assert_slices(&m, 0, FUNCTION_INSTANTS,
		      "7 10000+890 outer\n"
		      "7   10100+60 leaf\n"
		      "7   10300+180 middle\n"
		      "7     10400+50 leaf\n");
}

/* An interrupt's records have the time of the record that it interrupted (6.1). */
static void equal_times_nest(void **state _unused_)
{
	struct maker m;

	make_functions(&m);
	page_begin(&m, 10000);
	event_graph_entry(&m, 10000, 7, OUTER, 0);
	event_graph_entry(&m, 10000, 7, IRQ, 1);
	leave(&m, 10000, 7, IRQ, 1, 0);
	event_graph_entry(&m, 10000, 7, MIDDLE, 1);
	event_graph_entry(&m, 10000, 7, LEAF, 2);
	leave(&m, 10100, 7, LEAF, 2, 90);
	leave(&m, 10100, 7, MIDDLE, 1, 90);
	leave(&m, 10100, 7, OUTER, 0, 100);
	event_graph_entry(&m, 10100, 7, OUTER, 0);
	event_graph_entry(&m, 10100, 7, MIDDLE, 1);
	event_graph_entry(&m, 10100, 7, LEAF, 2);
	leave(&m, 10100, 7, LEAF, 2, 0);
	leave(&m, 10100, 7, MIDDLE, 1, 0);
	leave(&m, 10100, 7, OUTER, 0, 0);
	assert_slices(&m, 0, FUNCTION_INSTANTS,
		      "7 10000+100 outer\n"
		      "7   10001+0 irq\n"
		      "7   10002+98 middle\n"
		      "7     10003+90 leaf\n"
		      "7 10100+3 outer\n"
		      "7   10101+2 middle\n"
		      "7     10102+0 leaf\n");
}

static void missing_calls_are_shown(void **state _unused_)
{
	struct maker m;

	make_functions(&m);
	page_begin(&m, 10000);
	event_graph_entry(&m, 10010, 7, LEAF, 1);
	leave(&m, 10100, 7, LEAF, 1, 80);
	leave(&m, 10200, 7, OUTER, 0, 5000);
	event_graph_entry(&m, 10300, 7, OUTER, 0);
	event_graph_entry(&m, 10400, 7, MIDDLE, 1);
	event_graph_entry(&m, 10500, 7, OUTER, 0);
	leave(&m, 10600, 8, OUTER, 0, 100);
	assert_slices(&m, 0, FUNCTION_INSTANTS,
		      "7 5200+5000 outer entry=missing\n"
		      "7   10010+80 leaf\n"
		      "7 10300+200 outer exit=missing\n"
		      "7   10400+100 middle exit=missing\n"
		      "7 10500+100 outer exit=missing\n"
		      "8 10500+100 outer entry=missing\n");
}

static void tell_returned_values(Traced__Capture__Header *h)
{
	h->tracer = (char *)"function_graph";
	h->trace_options = (char *)"funcgraph-duration\nfuncgraph-retval\n";
}

/* CONFIG_FUNCTION_GRAPH_RETVAL of Linux 6.5; Debian builds its kernels without it. */
static void make_returned_values(struct maker *m, const char *release)
{
	maker_init(m, 8, false, 4096);
	m->header = tell_returned_values;
	m->release = release;
	maker_head(m);
	maker_graph_entry_format(m);
	maker_graph_retval_format(m);
	maker_symbols(m, "0000000000001000 T outer\n"
			 "0000000000003000 T leaf\n"
			 "0000000000005000 T end\n");
	page_begin(m, 10000);
	event_graph_entry(m, 10000, 7, OUTER, 0);
	event_graph_entry(m, 10100, 7, LEAF, 1);
	event_graph_retval(m, 10200, 7, LEAF, 1, 50, 0x2a);
	event_graph_entry(m, 10300, 7, LEAF, 1);
	event_graph_retval(m, 10400, 7, LEAF, 1, 50, 0xfffffff4); /* an int, -ENOMEM */
	event_graph_retval(m, 10500, 7, OUTER, 0, 500, (uint64_t)-2);
}

static void assert_returned_text(const char *release, const char *leaf, const char *failed,
				 const char *outer)
{
	_cleanup_exported_ struct exported e = { .options.format = "txt" };
	const char *text;
	struct maker m;

	make_returned_values(&m, release);
	maker_finish(&m);
	export_whole(&e, m.fd);
	text = e.file.data;
	if (!strstr(text, leaf) || !strstr(text, failed) || !strstr(text, outer))
		fail_msg("%s", text);
	maker_deinit(&m);
}

/*
 * The same as print_graph_retval() of kernel/trace/trace_functions_graph.c, before 6.13 and since.
 */
static void returned_values_are_shown(void **state _unused_)
{
	struct maker m;

	assert_returned_text("6.12.1", "  leaf(); /* = 0x2a */\n", "  leaf(); /* = -12 */\n",
			     "} /* outer = -2 */\n");
	assert_returned_text("6.18.0", "  leaf(); /* ret=0x2a */\n", "  leaf(); /* ret=-12 */\n",
			     "} /* outer ret=-2 */\n");
	make_returned_values(&m, "6.18.0");
	assert_slices(&m, 0, FUNCTION_INSTANTS,
		      "7 10000+500 outer ret=-2\n"
		      "7   10100+50 leaf ret=0x2a\n"
		      "7   10300+50 leaf ret=-12\n");
}

/* A function may return the place of the kernel's own data. */
static void returned_addresses_are_hidden(void **state _unused_)
{
	static const char *const formats[] = { "txt", "json", "html", "pftrace" };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(formats); i++) {
		const bool raw = i % 2;
		_cleanup_exported_ struct exported e = { .options.format = formats[i / 2],
							 .options.raw_addresses = raw };
		struct maker m;

		make_returned_values(&m, "6.18.0");
		event_graph_entry(&m, 10600, 7, LEAF, 0);
		event_graph_retval(&m, 10700, 7, LEAF, 0, 50, 0xffffffff81234568);
		maker_finish(&m);
		export_whole(&e, m.fd);
		assert_true(!memmem(e.file.data, e.file.len, "ffffffff81234568", 16) == !raw);
		assert_non_null(memmem(e.file.data, e.file.len, "0x2a", 4));
		maker_deinit(&m);
	}
}

static void make_values(struct maker *m, const char *release, bool caller_has_args)
{
	static const char lines[] = "enum 2 ONE=1 MINUS=-7\n"
				    "leaf file:p count:i how:e2\n"
				    "outer s:s16/pair\n"
				    "middle a:i b:i\n";

	maker_init(m, 8, false, 4096);
	m->header = by_tracer;
	m->release = release;
	maker_head(m);
	maker_graph_formats(m);
	maker_graph_value_formats(m, caller_has_args);
	maker_symbols(m, "0000000000001000 T outer\n"
			 "0000000000002000 T middle\n"
			 "0000000000003000 T leaf\n"
			 "0000000000004000 T irq\n"
			 "0000000000005000 T end\n");
	assert_int_equal(stream_write(&m->writer, CHUNK_ARGUMENTS, lines, strlen(lines)), 0);
	page_begin(m, 10000);
}

/* The arguments of Linux 6.15, with the kernel's text for each value. */
static void arguments_are_shown(void **state _unused_)
{
	static const uint64_t pair[] = { 1, 2 }, leaf[] = { 0x4000, (uint64_t)-3, 1 },
			      one[] = { 5 };
	struct maker m;

	make_values(&m, "6.18.0", false);
	event_graph_words(&m, 10000, 7, ID_GRAPH_ARGS, OUTER, 0, pair, 2);
	event_graph_words(&m, 10100, 7, ID_GRAPH_ARGS, LEAF, 1, leaf, 3);
	leave(&m, 10200, 7, LEAF, 1, 50);
	event_graph_words(&m, 10300, 7, ID_GRAPH_ARGS, MIDDLE, 1, one, 1);
	leave(&m, 10400, 7, MIDDLE, 1, 50);
	event_graph_words(&m, 10500, 7, ID_GRAPH_ARGS, IRQ, 1, one, 1);
	leave(&m, 10600, 7, IRQ, 1, 50);
	leave(&m, 10900, 7, OUTER, 0, 890);
	assert_slices(&m, 0, FUNCTION_INSTANTS,
		      "7 10000+890 outer arguments{ s=(pair)[0x1:0x2] }\n"
		      "7   10100+50 leaf arguments{ file=0x4000 count=-3 how=1 [ONE] }\n"
		      "7   10300+50 middle arguments{ a=5 ...=not recorded }\n"
		      "7   10500+50 irq\n");
}

/* Linux 6.13 has a field for the return address; 6.19 has it before the arguments. */
static void callers_are_shown(void **state _unused_)
{
	static const uint64_t alone[] = { OUTER + 0x10 },
			      all[] = { OUTER + 0x10, 0x4000, 13, (uint64_t)-7 };
	struct maker m;

	make_values(&m, "6.13.0", false);
	event_graph_words(&m, 10100, 7, ID_GRAPH_CALLER, LEAF, 1, alone, 1);
	leave(&m, 10200, 7, LEAF, 1, 50);
	assert_slices(&m, 0, FUNCTION_INSTANTS, "7 10100+50 leaf from=outer+0x10/0x1000\n");
	make_values(&m, "6.19.0", true);
	event_graph_words(&m, 10100, 7, ID_GRAPH_CALLER, LEAF, 1, all, 4);
	leave(&m, 10200, 7, LEAF, 1, 50);
	event_graph_words(&m, 10300, 7, ID_GRAPH_CALLER, LEAF, 1, alone, 1);
	leave(&m, 10400, 7, LEAF, 1, 50);
	/* Too short for a return address. */
	event_graph_words(&m, 10500, 7, ID_GRAPH_CALLER, LEAF, 1, NULL, 0);
	assert_slices(&m, 0, FUNCTION_INSTANTS,
		      "7 10100+50 leaf from=outer+0x10/0x1000"
		      " arguments{ file=0x4000 count=13 how=-7 [MINUS] }\n"
		      "7 10300+50 leaf from=outer+0x10/0x1000\n");
}

static void make_hits(struct maker *m)
{
	make_functions(m);
	page_begin(m, 10000);
	hit(m, 10000, 7, LEAF, OUTER);
	hit(m, 10200, 7, MIDDLE, OUTER + 4);
	hit(m, 10300, 8, LEAF, MIDDLE + 8);
	hit(m, 10400, 7, LEAF, OUTER);
	hit(m, 10500, 7, LEAF, MIDDLE);
	hit(m, 2000000, 7, LEAF, MIDDLE);
}

static void hits_are_instants(void **state _unused_)
{
	struct maker m;

	make_hits(&m);
	assert_slices(&m, 0, FUNCTION_INSTANTS,
		      "7 10000 leaf from=outer\n"
		      "7 10200 middle from=outer\n"
		      "7 10400 leaf from=outer\n"
		      "7 10500 leaf from=middle\n"
		      "7 2000000 leaf from=middle\n"
		      "8 10300 leaf from=middle\n");
}

static void runs_of_hits_are_slices(void **state _unused_)
{
	struct maker m;

	make_hits(&m);
	assert_slices(&m, 0, FUNCTION_SLICES,
		      "7 10000+400 outer calls=3 leaf=2 middle=1\n"
		      "7 10500 leaf from=middle\n"
		      "7 2000000 leaf from=middle\n"
		      "8 10300 leaf from=middle\n");
}

static void a_view_has_its_words(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	enum function_view view;

	assert_int_equal(function_view_find("slices", &view, &err), 0);
	assert_int_equal(view, FUNCTION_SLICES);
	assert_string_equal(function_view_name(view), "slices");
	assert_int_equal(function_view_find("instants", &view, &err), 0);
	assert_int_equal(view, FUNCTION_INSTANTS);
	assert_int_equal(function_view_find("slice", &view, &err), -EINVAL);
	assert_non_null(strstr(err.message, "instants, slices"));
	assert_int_equal(export_format_check_functions(export_format_find("json.gz", NULL),
						       FUNCTION_SLICES, &err),
			 0);
	assert_int_equal(export_format_check_functions(export_format_find("txt", NULL),
						       FUNCTION_SLICES, &err),
			 -EINVAL);
	assert_non_null(strstr(err.hint, ".json"));
}

static int with_elements_first(void **state _unused_)
{
	elements_first = true;
	return 0;
}

int main(void)
{
	const struct CMUnitTest once[] = {
		cmocka_unit_test(recorded_graphs_are_as_in_the_text),
		cmocka_unit_test(returned_values_are_shown),
		cmocka_unit_test(returned_addresses_are_hidden),
		cmocka_unit_test(a_view_has_its_words),
	};
	const struct CMUnitTest each_way[] = {
		cmocka_unit_test(a_graph_is_slices),	   cmocka_unit_test(equal_times_nest),
		cmocka_unit_test(missing_calls_are_shown), cmocka_unit_test(hits_are_instants),
		cmocka_unit_test(runs_of_hits_are_slices), cmocka_unit_test(arguments_are_shown),
		cmocka_unit_test(callers_are_shown),
	};

	return cmocka_run_group_tests(once, NULL, NULL) +
	       cmocka_run_group_tests_name("text first", each_way, NULL, NULL) +
	       cmocka_run_group_tests_name("elements first", each_way, with_elements_first, NULL);
}
