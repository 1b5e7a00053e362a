/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * parts PART: the cost of one part of the pipeline alone, in nanoseconds of this thread's CPU time:
 * the median of several runs, and the best one. For `meson test --benchmark`; no root, no tracing.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "daemon/capture/names/seen_events.h"
#include "formats/formats.h"
#include "make_stream.h"
#include "parts.h"
#include "print/format_int.h"
#include "trace/index.h"
#include "trace/merge.h"

#define CPUS 16
#define EVENTS 200000 /* of a capture that takes a few milliseconds */

#define PAGE_EVENTS 50 /* so many of sched_switch nearly fill a sub-buffer */

static void put_page(struct maker *m, uint32_t cpu, uint64_t ts)
{
	char from[16], to[16];

	page_begin(m, ts + cpu);
	for (int i = 0; i < PAGE_EVENTS; i++) {
		snprintf(from, sizeof(from), "worker-%d", i);
		snprintf(to, sizeof(to), "worker-%d", i + 1);
		event_switch(m, ts + (uint64_t)i * 1000 + cpu, 1000 + i, from, i % 3, 120, 1001 + i,
			     to);
	}
	page_end(m, 0);
}

/* A page of each CPU in turn, with times that interleave. */
static void make_capture(struct maker *m)
{
	uint64_t ts = 1000000000;

	maker_init(m, 8, false, 4096);
	maker_head(m);
	for (int i = 0; i < EVENTS; i += CPUS * PAGE_EVENTS) {
		for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
			put_page(m, cpu, ts);
			maker_flush(m, cpu, BUFFER_MAIN, 0);
		}
		ts += PAGE_EVENTS * 1000;
	}
	maker_end(m);
}

struct capture {
	struct maker m;
	struct stream_reader reader;
	struct stream_index index;
	int out;
};

static void capture_init(struct capture *c)
{
	const struct index_options options = { 0 };

	make_capture(&c->m);
	assert_int_equal(stream_reader_init(&c->reader, c->m.fd, NULL), 0);
	assert_int_equal(stream_index_open(&c->index, &c->reader, &options, NULL), 0);
	assert_int_equal(stream_index_finish(&c->index, NULL), 0);
	c->out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_true(c->out >= 0);
}

static void capture_deinit(struct capture *c)
{
	stream_index_deinit(&c->index);
	maker_deinit(&c->m);
	close(c->out);
}

static size_t run_pages(void *userdata)
{
	struct capture *c = userdata;
	struct page_iter it;
	struct record rec;
	struct maker m;
	size_t n = 0;

	maker_init(&m, 8, false, 4096);
	put_page(&m, 0, 1000000000);
	start();
	for (int i = 0; i < EVENTS / PAGE_EVENTS; i++) {
		if (page_iter_init(&it, &c->index.info.layout, m.subbufs.data, 4096) < 0)
			abort();
		while (page_iter_next(&it, &rec) > 0)
			n++;
	}
	stop();
	maker_deinit(&m);
	return n;
}

static size_t run_merge(void *userdata)
{
	struct capture *c = userdata;
	_cleanup_(merge_freep) struct merge *merge = NULL;
	struct merge_item item;
	size_t n = 0;

	assert_int_equal(merge_new(&merge, &c->index.info.layout, &c->index.rings[BUFFER_MAIN],
				   &c->reader, NULL),
			 0);
	start();
	while (merge_next(merge, &item, NULL) > 0)
		n++;
	stop();
	return n;
}

static size_t run_print(void *userdata)
{
	struct capture *c = userdata;
	_cleanup_(merge_freep) struct merge *merge = NULL;
	_cleanup_(printer_freep) struct printer *p = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT;
	const struct event *ev = event_table_find(c->index.info.events, ID_SWITCH);
	struct merge_item item;

	assert_int_equal(merge_new(&merge, &c->index.info.layout, &c->index.rings[BUFFER_MAIN],
				   &c->reader, NULL),
			 0);
	assert_int_equal(printer_new(&p, c->index.info.events), 0);
	assert_int_equal(merge_next(merge, &item, NULL), MERGE_RECORD);
	start();
	for (int i = 0; i < EVENTS; i++) {
		buf_clear(&out);
		event_print(p, ev, &item.event.rec, &out);
	}
	stop();
	return EVENTS;
}

static size_t run_numbers(void *userdata)
{
	const int *base = userdata;
	uint64_t v = UINT64_C(88172645463325252);
	char text[32];
	size_t written = 0;

	start();
	for (int i = 0; i < EVENTS; i++) {
		uint64_t n = v >> i % 64;

		v = v * UINT64_C(6364136223846793005) + 1;
		written +=
			(size_t)((*base == 16 ? format_hex(text, n) : format_dec(text, n)) - text);
	}
	stop();
	if (!written)
		abort();
	return EVENTS;
}

/* A usual line, with nothing to escape; and one with quotes and two-byte letters. */
static size_t run_escape(void *userdata)
{
	const char *text = userdata;
	_cleanup_buf_ struct buf out = BUF_INIT;
	size_t len = strlen(text);

	start();
	for (int i = 0; i < EVENTS; i++) {
		buf_clear(&out);
		json_escape_line(&out, text, len);
	}
	stop();
	return EVENTS * len;
}

static size_t run_export(void *userdata)
{
	const char *format = userdata;
	struct capture c;
	struct export_options options = { .format = format, .threads = 1 };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	capture_init(&c);
	start();
	if (export_stream(c.m.fd, c.out, &options, &result, &err) < 0)
		fail_msg("%s", err.message);
	stop();
	capture_deinit(&c);
	return EVENTS;
}

static void page_part(void)
{
	struct capture c;

	capture_init(&c);
	measure("reading sub-buffers", "record", run_pages, &c);
	capture_deinit(&c);
}

/* One sub-buffer, in the cache as when the recorder has just copied it. */
static size_t run_seen(void *userdata)
{
	struct seen_events seen = { 0 };
	struct maker m;

	maker_init(&m, 8, false, 4096);
	put_page(&m, 0, 1000000000);
	start();
	for (int i = 0; i < EVENTS / PAGE_EVENTS; i++)
		seen_events_look(&seen, userdata, m.subbufs.data, 1);
	stop();
	if (seen.any)
		abort();
	maker_deinit(&m);
	return EVENTS;
}

static void seen_part(void)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct subbuf_layout layout;
	struct maker m;

	maker_init(&m, 8, false, 4096);
	maker_header_page(&m, &text);
	assert_int_equal(subbuf_layout_parse(&layout, text.data, text.len, 0), 0);
	measure("which events a sub-buffer has", "record", run_seen, &layout);
	maker_deinit(&m);
}

static void merge_part(void)
{
	struct capture c;

	capture_init(&c);
	measure("merging 16 CPUs", "record", run_merge, &c);
	capture_deinit(&c);
}

static void print_part(void)
{
	int dec = 10, hex = 16;
	struct capture c;

	capture_init(&c);
	measure("printing sched_switch", "record", run_print, &c);
	capture_deinit(&c);
	measure("decimal numbers of any length", "number", run_numbers, &dec);
	measure("hexadecimal numbers of any length", "number", run_numbers, &hex);
}

static void json_part(void)
{
	char plain[] = "prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> "
		       "next_comm=worker next_pid=4711 next_prio=120";
	char quoted[] = "path=\"/home/\xc3\xa4\" mode=\\x";

	measure("escaping for JSON, plain text", "byte", run_escape, plain);
	measure("escaping for JSON, quotes and umlauts", "byte", run_escape, quoted);
	measure("export to JSON, one thread", "event", run_export, (char[]){ "json" });
}

static void text_part(void)
{
	measure("export to text, one thread", "event", run_export, (char[]){ "txt" });
}

static void perfetto_part(void)
{
	measure("export to Perfetto's protobuf", "event", run_export, (char[]){ "pftrace" });
}

static void ctf_part(void)
{
	measure("export to CTF", "event", run_export, (char[]){ "ctf" });
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {
		{ "page", page_part },	       { "seen", seen_part }, { "merge", merge_part },
		{ "print", print_part },       { "json", json_part }, { "text", text_part },
		{ "perfetto", perfetto_part }, { "ctf", ctf_part },
	};

	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(parts); i++)
		if (strcmp(argv[1], parts[i].name) == 0) {
			parts[i].run();
			return 0;
		}
	fprintf(stderr, "usage: %s page|seen|merge|print|json|text|perfetto|ctf\n", argv[0]);
	return 2;
}
