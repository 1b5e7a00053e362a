/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The report `timer`: how late timers expired, and how long their functions ran. An hrtimer is late
 * by `now` of hrtimer_expire_entry less `softexpires` of hrtimer_start, both in ns. A timer of the
 * wheel is late by `now` less `baseclk` of timer_expire_entry, in jiffies.
 */
#include <errno.h>
#include <stdlib.h>

#include "report/function_text.h"

enum timer_kind { TIMER_WHEEL, TIMER_HIGH_RES, TIMER_KINDS };

/* Timers that run at once on one CPU, each interrupted by the next: of softirqs and interrupts. */
#define NESTED_MAX 4

struct timer_row {
	uint64_t function;
	enum timer_kind kind;
	bool is_rest;
	uint64_t expired, starts, cancels;
	struct histogram late, run;
	uint64_t late_jiffies; /* most */
	uint64_t max_at, cut, open;
	uint64_t start_cut, start_open; /* expired without a start, if starts were recorded */
};

/* A timer by its address; it may be another one later. */
struct timer_known {
	struct timer_row *row; /* NULL: unknown */
	bool armed;
	bool canceled; /* since it was armed: right before it expires, too */
	uint64_t due, mark;
};

struct timer_run {
	uint64_t timer, from;
	struct timer_row *row;
};

/* Timer functions that run on a CPU now. */
struct timer_cpu {
	bool lost; /* events were lost on this CPU */
	unsigned depth;
	struct timer_run runs[NESTED_MAX];
};

struct timer_fields {
	struct field_at start_timer, start_function, due, cancel_timer, entry_timer, entry_function,
		now, base, exit_timer;
};

struct timer_report {
	struct report report;
	struct rows rows;   /* of struct timer_row, by function and kind */
	struct rows timers; /* of struct timer_known, by address and kind */
	struct rows cpus;   /* of struct timer_cpu */
	struct timer_fields fields[TIMER_KINDS];
	bool saw_start[TIMER_KINDS];
};

static struct timer_row *timer_row(struct timer_report *t, enum timer_kind kind, uint64_t function)
{
	struct timer_row *row = rows_get(&t->rows, (struct row_key){ function, kind });

	if (row) {
		row->function = function;
		row->kind = kind;
		row->is_rest = row == t->rows.rest;
	}
	return row;
}

/* *ret NULL: there are too many. */
static int timer_known(struct timer_report *t, enum timer_kind kind, uint64_t timer,
		       struct timer_known **ret)
{
	struct timer_known *known = rows_get(&t->timers, (struct row_key){ timer, kind });

	if (!known)
		return -ENOMEM;
	*ret = known == t->timers.rest ? NULL : known;
	return 0;
}

static int timer_start(struct report *report, const struct trace_event *ev, enum timer_kind kind)
{
	struct timer_report *t = container_of(report, struct timer_report, report);
	const struct timer_fields *f = &t->fields[kind];
	struct timer_row *row = timer_row(t, kind, field_at_read(&f->start_function, &ev->rec));
	struct timer_known *known;
	int r = row ? timer_known(t, kind, field_at_read(&f->start_timer, &ev->rec), &known)
		    : -ENOMEM;

	if (r < 0)
		return r;
	row->starts++;
	t->saw_start[kind] = true;
	if (known)
		*known = (struct timer_known){
			.row = row,
			.armed = true,
			.due = field_at_read(&f->due, &ev->rec),
			.mark = report_mark(report->env),
		};
	return 0;
}

/* Kernels also trace this when a timer is taken out to expire, or to be started anew. */
static int timer_cancel(struct report *report, const struct trace_event *ev, enum timer_kind kind)
{
	struct timer_report *t = container_of(report, struct timer_report, report);
	struct timer_known *known;
	int r = timer_known(t, kind, field_at_read(&t->fields[kind].cancel_timer, &ev->rec),
			    &known);

	if (r < 0 || !known || !known->row)
		return r;
	known->row->cancels++;
	known->canceled = true;
	return 0;
}

/* By how much an expiring timer is late. */
static int timer_add_late(struct timer_report *t, const struct trace_event *ev,
			  enum timer_kind kind, struct timer_row *row,
			  const struct timer_known *known)
{
	const struct timer_fields *f = &t->fields[kind];
	uint64_t now = field_at_read(&f->now, &ev->rec), late;

	if (kind == TIMER_WHEEL) {
		late = now - field_at_read(&f->base, &ev->rec);
		late = f->now.size == 4 ? (uint32_t)late : late;
		if (f->base.size == f->now.size)
			row->late_jiffies = MAX(row->late_jiffies, late);
		return 0;
	}
	if (known && known->armed && report_is_whole(t->report.env, known->mark))
		return histogram_add(&row->late, now > known->due ? now - known->due : 0);
	if (report_is_whole(t->report.env, 0))
		row->start_open++;
	else
		row->start_cut++;
	return 0;
}

/* Another run of the timer, or too many at once: the exits of those were not seen. */
static void timer_begin_run(struct timer_cpu *cpu, struct timer_run run)
{
	if (cpu->depth == NESTED_MAX) {
		cpu->runs[0].row->cut++;
		cpu->depth--;
		for (unsigned i = 0; i < cpu->depth; i++)
			cpu->runs[i] = cpu->runs[i + 1];
	}
	cpu->runs[cpu->depth++] = run;
}

static int timer_expire(struct report *report, const struct trace_event *ev, enum timer_kind kind)
{
	struct timer_report *t = container_of(report, struct timer_report, report);
	const struct timer_fields *f = &t->fields[kind];
	uint64_t timer = field_at_read(&f->entry_timer, &ev->rec);
	struct timer_row *row = timer_row(t, kind, field_at_read(&f->entry_function, &ev->rec));
	struct timer_cpu *cpu = rows_get(&t->cpus, (struct row_key){ ev->cpu, 0 });
	struct timer_known *known;
	int r = row && cpu ? timer_known(t, kind, timer, &known) : -ENOMEM;

	if (r < 0)
		return r;
	row->expired++;
	r = timer_add_late(t, ev, kind, row, known);
	if (known) {
		if (known->canceled && known->row->cancels)
			known->row->cancels--;
		*known = (struct timer_known){ .row = row };
	}
	timer_begin_run(cpu, (struct timer_run){ timer, ev->rec.ts, row });
	return r;
}

static int timer_exit(struct report *report, const struct trace_event *ev, enum timer_kind kind)
{
	struct timer_report *t = container_of(report, struct timer_report, report);
	uint64_t timer = field_at_read(&t->fields[kind].exit_timer, &ev->rec), ns;
	struct timer_cpu *cpu = rows_get(&t->cpus, (struct row_key){ ev->cpu, 0 });
	struct timer_known *known;
	struct timer_run *run;
	struct timer_row *row;
	int r = cpu ? timer_known(t, kind, timer, &known) : -ENOMEM;

	if (r < 0)
		return r;
	/* Runs within this one that did not end are damage. */
	while (cpu->depth) {
		run = &cpu->runs[--cpu->depth];
		if (run->timer != timer || run->row->kind != kind) {
			run->row->cut++;
			continue;
		}
		ns = report_elapsed(run->from, ev->rec.ts);
		return histogram_add_at(&run->row->run, ns, ev->rec.ts, &run->row->max_at);
	}
	row = known && known->row ? known->row : timer_row(t, kind, 0);
	if (!row)
		return -ENOMEM;
	row->cut += cpu->lost;
	row->open += !cpu->lost;
	return 0;
}

static int timer_on_start(struct report *r, const struct trace_event *ev)
{
	return timer_start(r, ev, TIMER_WHEEL);
}

static int timer_on_cancel(struct report *r, const struct trace_event *ev)
{
	return timer_cancel(r, ev, TIMER_WHEEL);
}

static int timer_on_expire(struct report *r, const struct trace_event *ev)
{
	return timer_expire(r, ev, TIMER_WHEEL);
}

static int timer_on_exit(struct report *r, const struct trace_event *ev)
{
	return timer_exit(r, ev, TIMER_WHEEL);
}

static int timer_on_hr_start(struct report *r, const struct trace_event *ev)
{
	return timer_start(r, ev, TIMER_HIGH_RES);
}

static int timer_on_hr_cancel(struct report *r, const struct trace_event *ev)
{
	return timer_cancel(r, ev, TIMER_HIGH_RES);
}

static int timer_on_hr_expire(struct report *r, const struct trace_event *ev)
{
	return timer_expire(r, ev, TIMER_HIGH_RES);
}

static int timer_on_hr_exit(struct report *r, const struct trace_event *ev)
{
	return timer_exit(r, ev, TIMER_HIGH_RES);
}

/* A loss on the CPU cuts all that runs there. */
static int timer_loss(struct report *report, uint32_t cpu)
{
	struct timer_report *t = container_of(report, struct timer_report, report);
	struct timer_cpu *c = rows_get(&t->cpus, (struct row_key){ cpu, 0 });

	if (!c)
		return -ENOMEM;
	while (c->depth)
		c->runs[--c->depth].row->cut++;
	c->lost = true;
	return 0;
}

static const struct timer_names {
	const char *start, *cancel, *expire, *exit, *timer, *due;
	report_handler on_start, on_cancel, on_expire, on_exit;
} timer_names[TIMER_KINDS] = {
	[TIMER_WHEEL] = { "timer_start", "timer_cancel", "timer_expire_entry", "timer_expire_exit",
			  "timer", "expires", timer_on_start, timer_on_cancel, timer_on_expire,
			  timer_on_exit },
	[TIMER_HIGH_RES] = { "hrtimer_start", "hrtimer_cancel", "hrtimer_expire_entry",
			     "hrtimer_expire_exit", "hrtimer", "softexpires", timer_on_hr_start,
			     timer_on_hr_cancel, timer_on_hr_expire, timer_on_hr_exit },
};

static bool timer_open_kind(struct timer_report *t, struct report_env *env, enum timer_kind kind)
{
	const struct timer_names *n = &timer_names[kind];
	const struct event *start = NULL, *cancel = NULL, *entry = NULL, *exit = NULL;
	const bool big = env->big_endian;
	bool any;

	report_on(env, &t->report, "timer", n->start, n->on_start, &start);
	report_on(env, &t->report, "timer", n->cancel, n->on_cancel, &cancel);
	any = report_on(env, &t->report, "timer", n->expire, n->on_expire, &entry);
	report_on(env, &t->report, "timer", n->exit, n->on_exit, &exit);
	t->fields[kind] = (struct timer_fields){
		.start_timer = field_at_find(start, n->timer, big),
		.start_function = field_at_find(start, "function", big),
		.due = field_at_find(start, n->due, big),
		.cancel_timer = field_at_find(cancel, n->timer, big),
		.entry_timer = field_at_find(entry, n->timer, big),
		.entry_function = field_at_find(entry, "function", big),
		.now = field_at_find(entry, "now", big),
		.base = field_at_find(entry, "baseclk", big),
		.exit_timer = field_at_find(exit, n->timer, big),
	};
	return any || start;
}

static void timer_row_deinit(void *data)
{
	struct timer_row *row = data;

	histogram_deinit(&row->late);
	histogram_deinit(&row->run);
}

static int timer_open(struct report **ret, struct report_env *env)
{
	struct timer_report *t = calloc(1, sizeof(*t));
	bool any = false;

	if (!t)
		return -ENOMEM;
	*ret = &t->report;
	t->report.env = env;
	rows_init(&t->rows, sizeof(struct timer_row), timer_row_deinit);
	rows_init(&t->timers, sizeof(struct timer_known), NULL);
	rows_init(&t->cpus, sizeof(struct timer_cpu), NULL);
	for (enum timer_kind kind = 0; kind < TIMER_KINDS; kind++)
		any |= timer_open_kind(t, env, kind);
	return any ? 0 : -ENODATA;
}

static const struct column timer_columns[] = {
	COLUMN("function", COLUMN_TEXT),
	COLUMN("kind", COLUMN_TEXT),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("starts", COLUMN_COUNT),
	COLUMN("cancels", COLUMN_COUNT),
	COLUMN("total", COLUMN_TIME),
	COLUMN("run", COLUMN_HISTOGRAM),
	COLUMN("late", COLUMN_HISTOGRAM),
	COLUMN("late-jiffies", COLUMN_COUNT, .adds = ADDS_LARGEST),
	COLUMN("max-at", COLUMN_AT, .adds = ADDS_AT, .of = "run"),
	COLUMN("cut", COLUMN_COUNT),
	COLUMN("open", COLUMN_COUNT),
};

static void timer_put_row(struct table *t, const struct timer_report *report,
			  const struct timer_row *row)
{
	const bool starts = report->saw_start[row->kind];

	table_put_function(t, report->report.env, row->function, row->is_rest);
	table_put_text(t, row->kind == TIMER_WHEEL ? TEXT("timer") : TEXT("hrtimer"));
	table_put_count(t, row->expired);
	table_put_count(t, row->starts);
	table_put_count(t, row->cancels);
	table_put_count(t, row->run.sum);
	table_put_histogram(t, &row->run);
	table_put_histogram(t, &row->late);
	table_put_count(t, row->late_jiffies);
	table_put_count(t, row->max_at);
	table_put_count(t, row->cut + (starts ? row->start_cut : 0));
	table_put_count(t, row->open + (starts ? row->start_open : 0));
}

static int timer_close(struct report *report, struct table **ret)
{
	struct timer_report *t = container_of(report, struct timer_report, report);
	struct table *table;
	int r = table_new(&table, "timer", timer_columns, ARRAY_SIZE(timer_columns), "total");

	if (r < 0)
		return r;
	*ret = table;
	for (uint32_t i = 0; i < t->cpus.count; i++) {
		struct timer_cpu *cpu = rows_at(&t->cpus, i);

		while (cpu->depth)
			cpu->runs[--cpu->depth].row->open++;
	}
	for (uint32_t i = 0; i < rows_all(&t->rows); i++)
		timer_put_row(table, t, rows_each(&t->rows, i));
	return 0;
}

static void timer_free(struct report *report)
{
	struct timer_report *t = container_of(report, struct timer_report, report);

	rows_deinit(&t->rows);
	rows_deinit(&t->timers);
	rows_deinit(&t->cpus);
	free(t);
}

const struct report_kind report_timer = {
	.about = {
		.name = "timer",
		.summary = "how late timers expired, and how long their functions ran",
		.events = "timer",
	},
	.open = timer_open,
	.loss = timer_loss,
	.close = timer_close,
	.free = timer_free,
};
