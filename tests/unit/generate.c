/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes a synthetic capture stream: generate KIND COUNT FILE [MACHINE [LABEL]]
 *
 * KIND:
 * sched, syscalls, mixed: the records that Linux 6.18 writes for such a load, on two CPUs;
 * hists: as mixed, with the kernel's histograms of kmem:kmalloc, whose text is read from stdin;
 * functions, graph: of the function tracers (6.12), with 200,000 symbols;
 * numbers: the smallest events;
 * losses: the same; before the first of every three pages the kernel lost five events, before the
 * third an unknown number;
 * fields: an event with a field of every type (make_fields.h), with random values;
 * kinds: COUNT times all events of make_kinds.h;
 * a shape of make_hostile.h.
 * MACHINE: 64le, 64be, 32le or 32be; the function tracers' is 64le only.
 * LABEL: as if `tracectl -H` had recorded that host, with a clock that is tied within 3 us.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/io.h"
#include "make_fields.h"
#include "make_formats.h"
#include "make_hostile.h"
#include "make_kinds.h"
#include "random_series.h"
#include "trace/host_clock.h"

#define CPUS 2
#define SUBBUF 4096
#define PAGES_PER_CHUNK 64
#define TASKS 24
#define STACK 20
#define KERNEL UINT64_C(0xffffffff81000000)
#define SYMBOLS 200000
#define SYMBOL_SIZE 128
/* Traced functions: a few are called again and again. */
#define FUNCTIONS 3000

struct generator {
	struct maker m;
	uint64_t ts, random;
	unsigned cpu, pages;
	int32_t running[CPUS];
	uint64_t stack[CPUS][STACK], called[CPUS][STACK];
	unsigned depth[CPUS];
};

static uint64_t next_random(struct generator *g)
{
	return random_next(&g->random);
}

static void put_kernel_formats(struct generator *g)
{
	maker_kernel_formats(&g->m);
	maker_irq_formats(&g->m);
}

static void task_name(int32_t tid, char out[static 16])
{
	if (tid)
		snprintf(out, 16, "worker-%d", (int)tid);
	else
		snprintf(out, 16, "swapper/0");
}

/* The recorder reads tasks before the first event, so that no line needs a search for a name. */
static void put_tasks(struct generator *g)
{
	struct maker_task tasks[TASKS];
	char names[TASKS][16];

	for (int32_t i = 0; i < TASKS; i++) {
		task_name(1000 + i, names[i]);
		tasks[i] = (struct maker_task){
			.tid = 1000 + i, .tgid = 1000, .comm = names[i], .start_ns = 1000000000
		};
	}
	maker_tasks(&g->m, g->ts, 0, tasks, TASKS);
}

static void put_switch(struct generator *g)
{
	int32_t prev = g->running[g->cpu], next = prev ? 0 : 1000 + (int)(next_random(g) % TASKS);
	char from[16], to[16];

	if (prev && next_random(g) % 2)
		next = 1000 + (int)(next_random(g) % TASKS);
	task_name(prev, from);
	task_name(next, to);
	event_switch(&g->m, g->ts, prev, from, prev ? 1 : 0, 120, next, to);
	g->running[g->cpu] = next;
}

static void put_waking(struct generator *g)
{
	int32_t tid = 1000 + (int32_t)(next_random(g) % TASKS);
	struct {
		char comm[16];
		uint32_t pid, prio, cpu;
	} r = { "", (uint32_t)tid, 120, g->cpu };

	task_name(tid, r.comm);
	maker_event(&g->m, g->ts, ID_WAKING, g->running[g->cpu], &r, sizeof(r));
}

static void put_enter(struct generator *g)
{
	uint64_t r[7] = { next_random(g) % 300,
			  3,
			  UINT64_C(0x7ffc00000000) + next_random(g) % 65536,
			  4096,
			  0,
			  UINT64_C(0x7f0012345000),
			  (uint64_t)-100 };

	maker_event(&g->m, g->ts, ID_ENTER, g->running[g->cpu], r, sizeof(r));
}

static void put_exit(struct generator *g)
{
	uint64_t r[2] = { next_random(g) % 300, next_random(g) % 4096 };

	maker_event(&g->m, g->ts, ID_EXIT, g->running[g->cpu], r, sizeof(r));
}

static void put_function_formats(struct generator *g)
{
	static const char *const words[] = { "sched", "page",	"inode", "alloc",
					     "free",  "update", "queue", "lock" };
	struct buf text = BUF_INIT;

	maker_function_format(&g->m);
	maker_graph_formats(&g->m);
	/* A kernel's names have 24 characters on average. */
	for (unsigned i = 0; i < SYMBOLS; i++)
		buf_printf(&text, "%016" PRIx64 " %c %s_%s_%s%06u\n",
			   KERNEL + i * (uint64_t)SYMBOL_SIZE, i % 3 ? 't' : 'T', words[i % 8],
			   words[i / 8 % 8], words[i / 64 % 8], i);
	assert_int_equal(stream_write_packed(&g->m.writer, CHUNK_KALLSYMS, text.data, text.len), 0);
	buf_deinit(&text);
}

static void put_histograms(struct generator *g)
{
	Traced__Capture__Histogram m = TRACED__CAPTURE__HISTOGRAM__INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;

	assert_int_equal(read_to_end(STDIN_FILENO, STREAM_HISTOGRAM_MAX, &text), 0);
	m.event = (char *)"kmem:kmalloc";
	m.text = (ProtobufCBinaryData){ text.len, (uint8_t *)text.data };
	assert_int_equal(stream_write_message(&g->m.writer, CHUNK_HISTOGRAM, &m.base), 0);
}

static uint64_t any_function(struct generator *g)
{
	uint64_t r = next_random(g), n = r % 4 ? FUNCTIONS / 20 : FUNCTIONS;

	return KERNEL + (r >> 8) % n * (SYMBOLS / FUNCTIONS) * SYMBOL_SIZE;
}

/* Calls and returns in turn, with a random depth. */
static bool calls(struct generator *g)
{
	unsigned depth = g->depth[g->cpu];

	return depth == 0 || (depth < STACK && next_random(g) % 2);
}

static void push(struct generator *g)
{
	unsigned depth = g->depth[g->cpu]++;

	g->stack[g->cpu][depth] = any_function(g);
	g->called[g->cpu][depth] = g->ts;
}

static void put_function(struct generator *g)
{
	uint64_t r[2];
	unsigned depth;

	while (!calls(g))
		g->depth[g->cpu]--;
	push(g);
	depth = g->depth[g->cpu];
	r[0] = g->stack[g->cpu][depth - 1];
	r[1] = depth > 1 ? g->stack[g->cpu][depth - 2] + 64 : KERNEL + 64;
	maker_event(&g->m, g->ts, ID_FUNCTION, 1000 + (int32_t)g->cpu, r, sizeof(r));
}

static void put_graph(struct generator *g)
{
	bool call = calls(g);
	unsigned depth = g->depth[g->cpu] - !call;
	struct {
		uint64_t func;
		uint32_t depth, overrun;
		uint64_t called, returned;
	} r;

	if (call)
		push(g);
	else
		g->depth[g->cpu]--;
	r.func = g->stack[g->cpu][depth];
	r.depth = depth;
	r.overrun = 0;
	r.called = g->called[g->cpu][depth];
	r.returned = g->ts;
	maker_event(&g->m, g->ts, call ? ID_GRAPH_ENTRY : ID_GRAPH_EXIT, 1000 + (int32_t)g->cpu, &r,
		    call ? 12 : sizeof(r));
}

static void put_one(struct generator *g, const char *kind, uint64_t i)
{
	if (!strcmp(kind, "numbers") || !strcmp(kind, "losses"))
		event_number(&g->m, g->ts, 7, (uint32_t)i);
	else if (!strcmp(kind, "fields"))
		event_fields(&g->m, g->ts, &g->random);
	else if (!strcmp(kind, "kinds"))
		event_kinds(&g->m, g->ts);
	else if (!strcmp(kind, "functions"))
		put_function(g);
	else if (!strcmp(kind, "graph"))
		put_graph(g);
	else if (!strcmp(kind, "sched"))
		i % 3 ? put_switch(g) : put_waking(g);
	else if (!strcmp(kind, "syscalls"))
		i % 2 ? put_exit(g) : put_enter(g);
	else if (i % 10 < 2)
		event_irq(&g->m, g->ts, g->running[g->cpu], 24, i % 10 == 0);
	else if (i % 10 < 6)
		i % 2 ? put_exit(g) : put_enter(g);
	else
		i % 10 == 6 ? put_waking(g) : put_switch(g);
}

/* Most bytes that put_one writes, headers included. */
static size_t bytes_max(const char *kind)
{
	return strcmp(kind, "kinds") ? 280 : 800;
}

static uint64_t lost_before(const char *kind, unsigned page)
{
	static const uint64_t lost[] = { 5, 0, UINT64_MAX };

	return strcmp(kind, "losses") ? 0 : lost[page % ARRAY_SIZE(lost)];
}

/* Writes runs of sub-buffers in turn, as the two CPUs' readers do. */
static void put_all(struct generator *g, const char *kind, uint64_t count)
{
	page_begin(&g->m, g->ts);
	for (uint64_t i = 0; i < count; i++) {
		if (g->m.page.len + bytes_max(kind) > SUBBUF) {
			page_end(&g->m, lost_before(kind, g->pages));
			if (++g->pages == PAGES_PER_CHUNK) {
				maker_flush(&g->m, g->cpu, BUFFER_MAIN, 0);
				g->cpu = (g->cpu + 1) % CPUS;
				g->pages = 0;
			}
			page_begin(&g->m, g->ts);
		}
		g->ts += 200 + next_random(g) % 1000;
		put_one(g, kind, i);
	}
	page_end(&g->m, lost_before(kind, g->pages));
	maker_flush(&g->m, g->cpu, BUFFER_MAIN, 0);
}

static void by_function(Traced__Capture__Header *h)
{
	h->tracer = (char *)"function";
}

static void by_function_graph(Traced__Capture__Header *h)
{
	h->tracer = (char *)"function_graph";
}

/* Writes a hostile shape. False: there is none of that name. */
static bool put_shape(const char *name, const char *count, const char *path)
{
	const struct hostile_shape *s = hostile_shapes;
	int fd;

	while (s->name && strcmp(s->name, name) != 0)
		s++;
	if (!s->name)
		return false;
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	s->make(fd, strtoull(count, NULL, 10));
	return true;
}

static void put_host(int fd, const char *label, uint64_t from, uint64_t to)
{
	struct host_tie items[] = { { from, from, 2000 }, { to, to, 2000 } };
	const struct host_ties ties[TIE_KINDS] = { { items, ARRAY_SIZE(items),
						     ARRAY_SIZE(items) } };
	struct host_origin origin = { .timeline = "boot" };

	snprintf(origin.label, sizeof(origin.label), "%s", label);
	assert_int_equal(host_origin_append(fd, &origin, ties, NULL), 0);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "numbers",	 "losses", "fields", "kinds",	  "sched",
					     "syscalls", "mixed",  "graph",  "functions", "hists" };
	struct generator g = { .ts = UINT64_C(100000000000), .random = RANDOM_FIRST };
	const char *machine = argc >= 5 ? argv[4] : "64le";
	bool known = false;
	int fd;

	if (argc == 4 && put_shape(argv[1], argv[2], argv[3]))
		return 0;
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(kinds); i++)
		known |= !strcmp(argv[1], kinds[i]);
	if (argc < 4 || argc > 6 || !known || strlen(machine) != 4) {
		fprintf(stderr,
			"usage: %s "
			"numbers|losses|fields|kinds|sched|syscalls|mixed|hists|functions|graph|"
			"SHAPE "
			"COUNT "
			"FILE "
			"[64le [LABEL]]\n",
			argv[0]);
		return 2;
	}
	fd = open(argv[3], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0) {
		perror(argv[3]);
		return 1;
	}
	maker_init_fd(&g.m, fd, machine[0] == '3' ? 4 : 8, machine[2] == 'b', SUBBUF);
	if (!strcmp(argv[1], "functions"))
		g.m.header = by_function;
	if (!strcmp(argv[1], "graph"))
		g.m.header = by_function_graph;
	maker_head(&g.m);
	if (!strcmp(argv[1], "fields")) {
		maker_fields(&g.m);
	} else if (!strcmp(argv[1], "kinds")) {
		maker_kinds(&g.m);
	} else if (!strcmp(argv[1], "functions") || !strcmp(argv[1], "graph")) {
		put_function_formats(&g);
	} else {
		put_kernel_formats(&g);
	}
	if (strcmp(argv[1], "fields") != 0 && strcmp(argv[1], "kinds") != 0)
		put_tasks(&g);
	if (argc == 6)
		maker_clocks(&g.m, g.ts, 0);
	if (!strcmp(argv[1], "hists"))
		put_histograms(&g);
	put_all(&g, argv[1], strtoull(argv[2], NULL, 10));
	if (argc == 6)
		maker_clocks(&g.m, g.ts + 1, 2);
	maker_end(&g.m);
	if (argc == 6)
		put_host(fd, argv[5], UINT64_C(100000000000), g.ts + 1);
	maker_deinit(&g.m);
	return 0;
}
