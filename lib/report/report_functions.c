/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The report `functions`: how often kernel functions were called, and how long they took, out of
 * the function_graph tracer's entries and exits. An exit holds the kernel's own measurement, so a
 * call's time is known even if its entry was lost. Its self time is not: callees may be lost, too.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "print/funcgraph.h"
#include "report/function_text.h"
#include "report/recorded.h"

#define DEPTH_MAX 512
#define LEVELS_MAX (1U << 20) /* over all threads: 32 MiB */

struct call_row {
	uint64_t function;
	bool is_rest;
	uint64_t self;
	struct histogram time;
	uint64_t max_at, cut, open;
};

/* An open call. */
struct call {
	struct call_row *row; /* NULL: its entry was not seen */
	uint64_t mark;
	uint64_t callees; /* ns, of those that returned */
};

/* A thread's calls, by depth; the idle task has other ones on each CPU. */
struct call_stack {
	struct call *calls; /* owned */
	uint32_t depth, cap;
};

struct call_report {
	struct report report;
	struct rows rows;   /* of struct call_row, by function */
	struct rows stacks; /* of struct call_stack, by thread */
	uint32_t levels;    /* that all stacks have room for */
};

static struct call_row *call_row(struct call_report *c, uint64_t function)
{
	struct call_row *row = rows_get(&c->rows, (struct row_key){ function, 0 });

	if (row) {
		row->function = function;
		row->is_rest = row == c->rows.rest;
	}
	return row;
}

/* *ret NULL: there are too many. */
static int call_stack_of(struct call_report *c, const struct trace_event *ev,
			 struct call_stack **ret)
{
	struct row_key key = { (uint32_t)ev->pid, ev->pid ? 0 : ev->cpu + UINT64_C(1) };
	struct call_stack *stack = rows_get(&c->stacks, key);

	if (!stack)
		return -ENOMEM;
	*ret = stack == c->stacks.rest ? NULL : stack;
	return 0;
}

/* Makes the level of that depth available, and those above it. False: there are too many. */
static bool call_stack_reach(struct call_report *c, struct call_stack *s, uint32_t depth)
{
	if (depth >= s->cap) {
		uint32_t cap = MAX(depth + 1, MAX(s->cap * 2, 8U)), old = s->cap;

		if (depth >= DEPTH_MAX || cap - old > LEVELS_MAX - c->levels ||
		    vec_reserve_exact(s->calls, s->cap, cap - old) < 0)
			return false;
		c->levels += cap - old;
		s->cap = cap;
	}
	while (s->depth <= depth)
		s->calls[s->depth++] = (struct call){ 0 };
	return true;
}

/* The calls of that depth and deeper never returned, or their exits are missing. */
static void call_stack_drop(const struct call_report *c, struct call_stack *s, uint32_t depth)
{
	while (s->depth > depth) {
		const struct call *call = &s->calls[--s->depth];

		if (!call->row)
			continue;
		if (report_is_whole(c->report.env, call->mark))
			call->row->open++;
		else
			call->row->cut++;
	}
}

static int call_on_entry(struct report *report, const struct trace_event *ev)
{
	struct call_report *c = container_of(report, struct call_report, report);
	struct call_stack *stack;
	struct funcgraph entry;
	struct call_row *row;
	uint32_t depth;
	int r;

	if (!funcgraph_read(ev->desc, &ev->rec, &entry))
		return 0;
	row = call_row(c, entry.func);
	r = row ? call_stack_of(c, ev, &stack) : -ENOMEM;
	if (r < 0 || !stack)
		return r;
	depth = (uint32_t)MAX(entry.depth, 0);
	call_stack_drop(c, stack, depth);
	if (!call_stack_reach(c, stack, depth)) {
		row->cut++;
		return 0;
	}
	stack->calls[depth] = (struct call){
		.row = row,
		.mark = report_mark(report->env),
	};
	return 0;
}

/* call: NULL if its entry was not seen. Adds the call's time to ret_callees, its caller's. */
static int call_end(struct call_report *c, const struct trace_event *ev,
		    const struct funcgraph *exit, struct call_row *row, const struct call *call,
		    uint64_t *ret_callees)
{
	const bool whole = report_is_whole(c->report.env, call ? call->mark : 0);
	uint64_t ns = exit->rettime - exit->calltime;

	row->cut += !whole;
	row->open += whole && !call;
	/* The kernel never writes such times. */
	if (exit->rettime < exit->calltime)
		return 0;
	if (ret_callees)
		*ret_callees += ns;
	if (whole && call)
		row->self += ns - MIN(ns, call->callees);
	return histogram_add_at(&row->time, ns, ev->rec.ts, &row->max_at);
}

/* The open call that returns; NULL: none. Drops the calls within it. */
static const struct call *call_stack_return(const struct call_report *c, struct call_stack *s,
					    uint32_t depth, const struct call_row *row)
{
	call_stack_drop(c, s, depth + 1);
	if (s->depth > depth && s->calls[depth].row == row)
		return &s->calls[--s->depth];
	call_stack_drop(c, s, depth);
	return NULL;
}

static int call_on_exit(struct report *report, const struct trace_event *ev)
{
	struct call_report *c = container_of(report, struct call_report, report);
	const struct call *call;
	struct call_stack *stack;
	struct funcgraph exit;
	struct call_row *row;
	uint32_t depth;
	int r;

	if (!funcgraph_read(ev->desc, &ev->rec, &exit))
		return 0;
	row = call_row(c, exit.func);
	r = row ? call_stack_of(c, ev, &stack) : -ENOMEM;
	if (r < 0)
		return r;
	if (!stack)
		return call_end(c, ev, &exit, row, NULL, NULL);
	depth = (uint32_t)MAX(exit.depth, 0);
	call = call_stack_return(c, stack, depth, row);
	return call_end(c, ev, &exit, row, call,
			depth && stack->depth == depth ? &stack->calls[depth - 1].callees : NULL);
}

static void call_row_deinit(void *data)
{
	struct call_row *row = data;

	histogram_deinit(&row->time);
}

static void call_stack_deinit(void *data)
{
	struct call_stack *stack = data;

	free(stack->calls);
}

static int call_open(struct report **ret, struct report_env *env)
{
	struct call_report *c = calloc(1, sizeof(*c));
	bool any;

	if (!c)
		return -ENOMEM;
	*ret = &c->report;
	c->report.env = env;
	rows_init(&c->rows, sizeof(struct call_row), call_row_deinit);
	rows_init(&c->stacks, sizeof(struct call_stack), call_stack_deinit);
	/* Since Linux 6.15, an entry of the other name holds the return address, too. */
	report_on(env, &c->report, "ftrace", "funcgraph_entry", call_on_entry, NULL);
	report_on(env, &c->report, "ftrace", "fgraph_retaddr_entry", call_on_entry, NULL);
	any = report_on(env, &c->report, "ftrace", "funcgraph_exit", call_on_exit, NULL);
	return any && !recorded_lacks_tracer(env->info, "function_graph") ? 0 : -ENODATA;
}

static const struct column call_columns[] = {
	COLUMN("function", COLUMN_TEXT),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("total", COLUMN_TIME),
	COLUMN("self", COLUMN_TIME),
	COLUMN("time", COLUMN_HISTOGRAM),
	COLUMN("max-at", COLUMN_AT, .adds = ADDS_AT, .of = "time"),
	COLUMN("cut", COLUMN_COUNT),
	COLUMN("open", COLUMN_COUNT),
};

static void call_put_row(struct table *t, const struct report_env *env, const struct call_row *row)
{
	table_put_function(t, env, row->function, row->is_rest);
	table_put_count(t, row->time.count);
	table_put_count(t, row->time.sum);
	table_put_count(t, row->self);
	table_put_histogram(t, &row->time);
	table_put_count(t, row->max_at);
	table_put_count(t, row->cut);
	table_put_count(t, row->open);
}

static int call_close(struct report *report, struct table **ret)
{
	struct call_report *c = container_of(report, struct call_report, report);
	struct table *t;
	int r = table_new(&t, "functions", call_columns, ARRAY_SIZE(call_columns), "total");

	if (r < 0)
		return r;
	*ret = t;
	for (uint32_t i = 0; i < c->stacks.count; i++)
		call_stack_drop(c, rows_at(&c->stacks, i), 0);
	for (uint32_t i = 0; i < rows_all(&c->rows); i++)
		call_put_row(t, report->env, rows_each(&c->rows, i));
	return 0;
}

static void call_free(struct report *report)
{
	struct call_report *c = container_of(report, struct call_report, report);

	rows_deinit(&c->rows);
	rows_deinit(&c->stacks);
	free(c);
}

const struct report_kind report_functions = {
	.about = {
		.name = "functions",
		.summary = "how often kernel functions were called, and how long they took",
		.events = "-p function_graph",
	},
	.open = call_open,
	.close = call_close,
	.free = call_free,
};
