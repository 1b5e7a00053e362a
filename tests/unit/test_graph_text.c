/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The function_graph tracer's text of more events than one batch holds. Its lines depend on each
 * other across batches, and are the same for any number of threads. test_recorded.c compares them
 * with the kernel's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exported.h"
#include "make_formats.h"
#include "make_stream.h"
#include "occurrences.h"

#define START UINT64_C(100000000000)
#define PAGES 250 /* of each CPU */
#define PAGE_EVENTS 60
#define CPUS 3
#define EVENTS (CPUS * PAGES * PAGE_EVENTS)
#define KERNEL UINT64_C(0xffffffff81000000)
#define DEPTH 60 /* deeper than the kernel tracks */

/* One CPU's functions: those that are open. */
struct walk {
	unsigned seed;
	int32_t pid;
	unsigned depth;
	uint64_t open[DEPTH];
};

static void by_graph(Traced__Capture__Header *h)
{
	h->tracer = (char *)"function_graph";
	h->cpus = CPUS;
}

static void by_no_tracer(Traced__Capture__Header *h)
{
	h->tracer = (char *)"nop";
	h->cpus = CPUS;
}

static unsigned chance(struct walk *w, unsigned of)
{
	w->seed = w->seed * 1664525 + 1013904223;
	return (w->seed >> 8) % of;
}

static void put_exit(struct maker *m, uint64_t ts, int32_t pid, uint64_t func, uint32_t depth,
		     uint64_t took)
{
	event_graph_exit(m, ts, pid, func, depth, (uint32_t)(ts % 3), ts, ts + took);
}

static void walk_in(struct maker *m, uint64_t ts, struct walk *w)
{
	uint64_t func = KERNEL + chance(w, 8) * 64;

	event_graph_entry(m, ts, w->pid, func, w->depth);
	w->open[w->depth++] = func;
}

static void walk_out(struct maker *m, uint64_t ts, struct walk *w)
{
	uint64_t took = UINT64_C(1) << chance(w, 34);

	/* Sometimes the exit of another function, whose entry was lost. */
	w->depth--;
	put_exit(m, ts, w->pid, w->open[w->depth] + (chance(w, 50) ? 0 : 64), w->depth, took);
}

static void put_event(struct maker *m, uint64_t ts, struct walk *w)
{
	static const uint8_t parents[16] = { 8 };

	if (chance(w, 40) == 0) {
		/* Some have no name. */
		int32_t next = (int32_t)chance(w, 9);

		event_switch(m, ts, w->pid, "this", 0, 120, next, "that");
		w->pid = next;
	} else if (chance(w, 60) == 0) {
		event_print_mark(m, ts, w->pid, "free text");
	} else if (chance(w, 60) == 0) {
		maker_event(m, ts, ID_FUNCTION, w->pid, parents, sizeof(parents));
	} else if (chance(w, 40) == 0) {
		/* Shorter than its format. */
		maker_event(m, ts, ID_GRAPH_ENTRY, w->pid, parents, 8);
	} else if (!w->depth || (w->depth < DEPTH && chance(w, 2))) {
		walk_in(m, ts, w);
	} else {
		walk_out(m, ts, w);
	}
}

static void begin_capture(struct maker *m, void (*header)(Traced__Capture__Header *h))
{
	maker_init(m, 8, false, 4096);
	m->header = header;
	maker_head(m);
	maker_function_format(m);
	maker_graph_formats(m);
	maker_symbols(m, "ffffffff81000000 T first\n"
			 "ffffffff81000040 T in_a_module\t[the_module]\n"
			 "ffffffff81000080 T __irqentry_text_start\n"
			 "ffffffff81000080 T interrupt\n"
			 "ffffffff810000c0 T __irqentry_text_end\n"
			 "ffffffff81000100 T a_name_that_is_longer_than_what_is_kept_of_most_is\n"
			 "ffffffff81000140 T last\n"
			 "ffffffff81000300 T end\n");
}

static void make_capture(struct maker *m, void (*header)(Traced__Capture__Header *h),
			 uint32_t first_cpu)
{
	struct walk walks[CPUS] = { { .seed = 1 }, { .seed = 2, .pid = 5 }, { .seed = 3 } };
	const struct maker_task tasks[] = {
		{ .tid = 1, .tgid = 1, .comm = "one" },
		{ .tid = 3, .tgid = 3, .comm = "a_name_of_15_ch" },
	};

	begin_capture(m, header);
	maker_tasks(m, START, 0, tasks, ARRAY_SIZE(tasks));
	for (uint64_t p = 0; p < PAGES; p++) {
		for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
			uint64_t ts = START + p * PAGE_EVENTS * 100 + cpu;

			page_begin(m, ts);
			for (uint64_t i = 0; i < PAGE_EVENTS; i++)
				put_event(m, ts + i * 100, &walks[cpu]);
			page_flush(m,
				   p % 29 == 3	 ? p
				   : p % 31 == 3 ? UINT64_MAX
						 : 0,
				   first_cpu + cpu);
		}
	}
	maker_end(m);
}

static void convert(const struct maker *m, const char *options, unsigned threads, uint64_t events,
		    struct buf *out)
{
	_cleanup_exported_ struct exported e = {
		.options = { .format = "txt", .trace_options = options, .threads = threads },
	};

	export_whole(&e, m->fd);
	assert_int_equal(e.result.events, events);
	*out = e.file;
	e.file = BUF_INIT;
}

static void assert_same(const struct maker *m, const char *options, struct buf *alone)
{
	static const unsigned threads[] = { 2, 3, 5 };

	convert(m, options, 1, EVENTS, alone);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		_cleanup_buf_ struct buf text = BUF_INIT;

		convert(m, options, threads[i], EVENTS, &text);
		assert_int_equal(text.len, alone->len);
		assert_memory_equal(text.data, alone->data, text.len);
	}
}

static void all_threads_write_one_tree(void **state _unused_)
{
	_cleanup_buf_ struct buf usual = BUF_INIT, shown = BUF_INIT, hidden = BUF_INIT;
	_cleanup_(maker_deinit) struct maker m;

	make_capture(&m, by_graph, 0);
	assert_same(&m, NULL, &usual);
	assert_true(occurrences(usual.data, "();\n") > 1000);
	assert_true(occurrences(usual.data, "() {\n") > 1000);
	assert_true(occurrences(usual.data, "} /* ") > 50);
	assert_true(occurrences(usual.data, " => ") > 500);
	assert_true(occurrences(usual.data, " a_name_-3 ") > 50);
	assert_true(occurrences(usual.data, "/* free text */") > 100);
	assert_true(occurrences(usual.data, "==========>") > 100);
	assert_true(occurrences(usual.data, " EVENTS]\n") > 20);
	assert_same(&m, "funcgraph-proc\nfuncgraph-abstime\nfuncgraph-tail\nfuncgraph-overrun\n",
		    &shown);
	assert_int_equal(occurrences(shown.data, "==========>"),
			 occurrences(usual.data, "==========>"));
	assert_true(occurrences(shown.data, "(Overruns: 2)") > 100);
	assert_true(occurrences(shown.data, "one-1 ") > occurrences(usual.data, "one-1 "));
	assert_same(&m, "nofuncgraph-irqs\n", &hidden);
	assert_int_equal(occurrences(hidden.data, "==========>"), 0);
	assert_true(hidden.len < usual.len);
}

/* A recording of graph events beside another tracer's. */
static void beside_another_tracer(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_buf_ struct buf text = BUF_INIT;

	make_capture(&m, by_no_tracer, 0);
	assert_same(&m, NULL, &text);
	assert_true(occurrences(text.data, ": sched_switch: ") > 500);
	assert_true(occurrences(text.data, "();\n") > 1000);
	assert_true(occurrences(text.data, ": funcgraph_entry: --> ") > 500);
	assert_int_equal(occurrences(text.data, " => "), 0);
}

static void more_cpus_than_the_header_has(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_buf_ struct buf text = BUF_INIT;

	make_capture(&m, by_graph, 99);
	assert_same(&m, NULL, &text);
	assert_true(occurrences(text.data, "\n 99) ") > 1000);
	assert_true(occurrences(text.data, "\n 101) ") > 1000);
}

static void put_page(struct maker *m, uint64_t missed)
{
	page_flush(m, missed, 0);
}

/*
 * A function's entry ends a page: the next page begins with its exit, with another's, or after a
 * loss.
 */
static void entries_at_the_end_of_a_page(void **state _unused_)
{
	static const char expected[] = " 0)               |  first() {\n"
				       " 0)   1.500 us    |    last();\n"
				       " 0)               |    last() {\n"
				       "CPU:0 [LOST 2 EVENTS]\n"
				       " 0) + 20.000 us   |    }\n"
				       " 0)               |    last() {\n"
				       " 0) ! 300.000 us  |  }\n"
				       " 0)               |  first() {\n";
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_buf_ struct buf text = BUF_INIT;
	const uint64_t last = KERNEL + 5 * 64;
	char *lines;

	begin_capture(&m, by_graph);
	page_begin(&m, START);
	event_graph_entry(&m, START, 1, KERNEL, 0);
	event_graph_entry(&m, START + 1, 1, last, 1);
	put_page(&m, 0);
	page_begin(&m, START + 2);
	put_exit(&m, START + 2, 1, last, 1, 1500);
	event_graph_entry(&m, START + 3, 1, last, 1);
	put_page(&m, 0);
	page_begin(&m, START + 4);
	put_exit(&m, START + 4, 1, last, 1, 20000);
	event_graph_entry(&m, START + 5, 1, last, 1);
	put_page(&m, 2);
	page_begin(&m, START + 6);
	put_exit(&m, START + 6, 1, KERNEL, 0, 300000);
	event_graph_entry(&m, START + 7, 1, KERNEL, 0);
	put_page(&m, 0);
	maker_end(&m);
	convert(&m, NULL, 2, 8, &text);
	lines = strstr(buf_string(&text), " 0) ");
	assert_non_null(lines);
	assert_string_equal(lines, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_threads_write_one_tree),
		cmocka_unit_test(beside_another_tracer),
		cmocka_unit_test(entries_at_the_end_of_a_page),
		cmocka_unit_test(more_cpus_than_the_header_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
