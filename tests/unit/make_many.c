/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make_many.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "make_formats.h"

#define PAGES 16
#define STEP_NS 100
#define TASKS 4000
#define KERNEL UINT64_C(0xffffffff81000000)
#define FUNCTIONS 20000
#define FUNCTION_SIZE 128
#define STACK 8
#define PHASE 600 /* events per CPU */

/* Writes event i of a CPU. */
typedef void put_fn(struct maker *m, unsigned cpu, uint64_t i, uint64_t ts);

static int32_t task(unsigned cpu, uint64_t n)
{
	return (int32_t)(1 + (cpu * 7 + n) % TASKS);
}

static void task_name(int32_t tid, char out[static 16])
{
	snprintf(out, 16, "worker-%" PRId32, tid);
}

/* The recorder reads tasks before the first event: no reader searches the events for names. */
static void put_tasks(struct maker *m)
{
	for (int32_t tid = 1; tid <= TASKS; tid++) {
		char name[16];

		task_name(tid, name);
		maker_tasks(m, 0, 0, &(struct maker_task){ tid, tid, name, 0, false }, 1);
	}
}

static void put_number(struct maker *m, unsigned cpu, uint64_t i, uint64_t ts)
{
	event_number(m, ts, task(cpu, i / 50), (uint32_t)i);
}

/* Writes switch number n of a CPU, with which its task n + 1 begins to run. */
static void put_switch(struct maker *m, unsigned cpu, uint64_t n, uint64_t ts)
{
	int32_t prev = task(cpu, n), next = task(cpu, n + 1);
	char from[16], to[16];

	task_name(prev, from);
	task_name(next, to);
	event_switch(m, ts, prev, from, 1, 120, next, to);
}

static void put_waking(struct maker *m, unsigned cpu, uint64_t n, uint64_t ts)
{
	struct {
		char comm[16];
		uint32_t pid, prio, cpu;
	} r = { "", (uint32_t)task(cpu, n * 31), 120, cpu };

	task_name((int32_t)r.pid, r.comm);
	maker_event(m, ts, ID_WAKING, task(cpu, n), &r, sizeof(r));
}

static void put_sched(struct maker *m, unsigned cpu, uint64_t i, uint64_t ts)
{
	uint64_t n = i / 3 * 2 + i % 3;

	i % 3 < 2 ? put_switch(m, cpu, n, ts) : put_waking(m, cpu, n, ts);
}

static void put_mixed(struct maker *m, unsigned cpu, uint64_t i, uint64_t ts)
{
	uint64_t n = i / 4, enter[7] = { n % 300, 3, UINT64_C(0x7ffc00000000) + n, 4096, 0, n, 1 },
		 exit[2] = { n % 300, n % 4096 };

	if (i % 4 == 0)
		put_switch(m, cpu, n, ts);
	else if (i % 4 == 1)
		put_waking(m, cpu, n + 1, ts);
	else if (i % 4 == 2)
		maker_event(m, ts, ID_ENTER, task(cpu, n + 1), enter, sizeof(enter));
	else
		maker_event(m, ts, ID_EXIT, task(cpu, n + 1), exit, sizeof(exit));
}

static void put_irq(struct maker *m, unsigned cpu, uint64_t i, uint64_t ts)
{
	event_irq(m, ts, task(cpu, i / 50), 24 + cpu % 8, i % 2 == 0);
}

static void put_call(struct maker *m, unsigned cpu, uint64_t i, uint64_t ts)
{
	uint64_t n = i / 2 % 300, enter[7] = { n, 3, 0, 4096 }, exit[2] = { n, 1 };

	if (i % 2 == 0)
		maker_event(m, ts, ID_ENTER, task(cpu, i / 50), enter, sizeof(enter));
	else
		maker_event(m, ts, ID_EXIT, task(cpu, i / 50), exit, sizeof(exit));
}

#define MARK_MAX 3900

static void put_mark(struct maker *m, unsigned cpu, uint64_t i, uint64_t ts)
{
	static char text[MARK_MAX];

	memset(text, 'a' + (int)(i % 26), sizeof(text) - 1);
	event_print_mark(m, ts, task(cpu, i), text);
}

static uint64_t function(uint64_t n)
{
	return KERNEL + n * 7919 % FUNCTIONS * FUNCTION_SIZE;
}

static void put_hit(struct maker *m, unsigned cpu, uint64_t i, uint64_t ts)
{
	uint64_t r[2] = { function(i * STACK + cpu), function(i + cpu) };

	maker_event(m, ts, ID_FUNCTION, task(cpu, i / 50), r, sizeof(r));
}

static void put_function(struct maker *m, unsigned cpu, uint64_t i, uint64_t ts)
{
	uint64_t r[1 + STACK];

	for (size_t k = 0; k < ARRAY_SIZE(r); k++)
		r[k] = function(i / 2 * STACK + cpu + k);
	if (i % 2 == 0) {
		maker_event(m, ts, ID_FUNCTION, task(cpu, i / 50), r, 2 * sizeof(r[0]));
	} else {
		r[0] = STACK;
		maker_event(m, ts, ID_STACK, task(cpu, i / 50), r, sizeof(r));
	}
}

static void sched_formats(struct maker *m)
{
	maker_kernel_formats(m);
	put_tasks(m);
}

static void function_formats(struct maker *m)
{
	struct buf text = BUF_INIT;

	maker_function_format(m);
	maker_stack_format(m);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		buf_printf(&text, "%016" PRIx64 " t a_function_of_some_kind_%06u\n",
			   KERNEL + i * (uint64_t)FUNCTION_SIZE, i);
	maker_symbols(m, buf_string(&text));
	buf_deinit(&text);
}

static void put_phases(struct maker *m, unsigned cpu, uint64_t i, uint64_t ts)
{
	static put_fn *const phases[] = { put_sched, put_mixed, put_function };

	phases[i / PHASE % ARRAY_SIZE(phases)](m, cpu, i, ts);
}

static void all_formats(struct maker *m)
{
	maker_kernel_formats(m);
	function_formats(m);
}

static const struct many_kind {
	const char *name;
	uint64_t record_max; /* bytes, with its header */
	put_fn *put;
	void (*formats)(struct maker *m); /* and tasks; NULL: what maker_head writes suffices */
} kinds[] = {
	{ "numbers", 20, put_number, NULL },
	{ "sched", 76, put_sched, sched_formats },
	{ "mixed", 76, put_mixed, maker_kernel_formats },
	{ "irqs", 36, put_irq, maker_irq_formats },
	{ "calls", 76, put_call, sched_formats },
	{ "marks", 3960, put_mark, NULL },
	{ "hits", 32, put_hit, function_formats },
	{ "functions", 88, put_function, function_formats },
	{ "phases", 88, put_phases, all_formats },
};

const struct many_kind *many_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

static void put_page(struct maker *m, const struct many_kind *kind, unsigned cpu, unsigned cpus,
		     uint64_t first, uint64_t end)
{
	uint64_t start = UINT64_C(1000000000000);

	for (uint64_t i = first; i < end; i++) {
		uint64_t ts = start + (i * cpus + cpu) * STEP_NS;

		if (i == first)
			page_begin(m, ts);
		kind->put(m, cpu, i, ts);
	}
	page_end(m, 0);
}

static void put_pages(struct maker *m, const struct many_kind *kind, unsigned cpus, uint64_t each)
{
	uint64_t a_page = (m->subbuf_size - maker_data_offset(m)) / kind->record_max;

	for (uint64_t at = 0; at < each; at += PAGES * a_page) {
		for (unsigned cpu = 0; cpu < cpus; cpu++) {
			for (uint64_t p = at; p < MIN(each, at + PAGES * a_page); p += a_page)
				put_page(m, kind, cpu, cpus, p, MIN(each, p + a_page));
			maker_flush(m, cpu, BUFFER_MAIN, 0);
		}
	}
}

void many_put(struct maker *m, const struct many_kind *kind, unsigned cpus, uint64_t events)
{
	maker_head(m);
	if (kind->formats)
		kind->formats(m);
	put_pages(m, kind, cpus, events / cpus);
	maker_end(m);
}
