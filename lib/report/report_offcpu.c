/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How long tasks slept, in which state, and who woke them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret_hash.h"
#include "report/group.h"
#include "report/scheduler.h"
#include "report/stacks.h"

struct offcpu_row {
	struct group group;
	const struct stack *stack; /* NULL: unknown, or the row stands for something else */
	struct text waker;	   /* a task's name; empty: unknown, the sleep was cut or open */
	char state;
	uint64_t total;
	struct histogram time;
	struct histogram_late late;
	uint64_t max_at, cut, open;
};

/* A whole sleep's row depends on these, if it is not by stack. */
struct offcpu_kind {
	const struct task *task, *waker; /* NULL: unknown */
	int32_t tid, waker_tid;
	uint32_t state;
};

/* Rows that were found last. A power of two. */
#define OFFCPU_RECENT 4096U

struct offcpu_recent {
	struct offcpu_kind kind;
	struct offcpu_row *row; /* NULL: none yet */
};

struct offcpu {
	struct report report;
	struct rows rows;
	enum grouping grouping;
	bool by_stack, has_stacks;
	struct stacks stacks;
	struct rows sleeps; /* of struct offcpu_sleep, by tid */
	struct offcpu_recent recent[OFFCPU_RECENT];
	int index;
};

/* The stack of a task's last switch. */
struct offcpu_sleep {
	const struct stack *stack;
	uint64_t out_ts;
};

static const char *const offcpu_by[] = { "thread", "comm", "process", "stack", NULL };

static struct offcpu_sleep *offcpu_sleep_of(struct offcpu *o, struct sched_task *t)
{
	if (!t->row[o->index])
		t->row[o->index] = rows_get(&o->sleeps, (struct row_key){ (uint32_t)t->tid, 0 });
	return t->row[o->index];
}

/*
 * The stack of a switch comes after it, and is of the task that was switched out. Other events of
 * that task can't follow on this CPU before the next switch.
 */
static int offcpu_on_stack(struct report *report, const struct trace_event *ev)
{
	struct offcpu *o = container_of(report, struct offcpu, report);
	struct sched_task *t = scheduler_left(report->env->scheduler, ev->cpu);
	struct offcpu_sleep *sleep;

	if (!t || t->tid != ev->pid || t == scheduler_running(report->env->scheduler, ev->cpu))
		return 0;
	sleep = offcpu_sleep_of(o, t);
	if (!sleep)
		return -ENOMEM;
	sleep->out_ts = t->out_ts;
	sleep->stack = stacks_get(&o->stacks, ev);
	return sleep->stack ? 0 : -ENOMEM;
}

static const struct stack *offcpu_stack_of(struct offcpu *o, struct sched_task *t)
{
	const struct offcpu_sleep *sleep = offcpu_sleep_of(o, t);

	return sleep && t->out_ts && sleep->out_ts == t->out_ts ? sleep->stack : NULL;
}

/* The waker and the state of a sleep that is not whole may be of another one. */
static struct offcpu_row *offcpu_row_get(struct offcpu *o, const struct sched_span *span,
					 const struct task *waker_task)
{
	const struct report_env *env = o->report.env;
	struct sched_task *t = span->task;
	const bool whole = span->state == SPAN_WHOLE;
	const char state = whole ? sched_task_letter(t) : '?';
	struct text waker = whole ? report_task_name(waker_task, t->waker) : TEXT("");
	const struct stack *stack = whole && o->by_stack ? offcpu_stack_of(o, t) : NULL;
	const struct row_key more =
		row_key_join(row_key_of_text(waker), (struct row_key){ (unsigned char)state, 0 });
	struct offcpu_row *row;

	row = o->by_stack ? rows_get(&o->rows,
				     row_key_join((struct row_key){ (uintptr_t)stack, 0 }, more))
			  : group_find(&o->rows, o->grouping, t->known, t->tid, span->cpu, &more);
	if (!row || row->group.used)
		return row;
	group_begin(env, &o->rows, &row->group, o->grouping, t->known, t->tid, span->cpu);
	row->stack = row->group.is_rest ? &o->stacks.rest : stack;
	row->waker = row->group.is_rest ? TEXT("") : waker;
	row->state = row->group.is_rest ? '?' : state;
	return row;
}

static struct offcpu_recent *offcpu_recent_of(struct offcpu *o, const struct offcpu_kind *k)
{
	const uint64_t both = (uint64_t)(uint32_t)k->tid << 32 | (uint32_t)k->waker_tid;

	return &o->recent[hash_number(both ^ (uint64_t)k->state << 32) % OFFCPU_RECENT];
}

static bool offcpu_kind_equal(const struct offcpu_kind *a, const struct offcpu_kind *b)
{
	return a->task == b->task && a->waker == b->waker && a->tid == b->tid &&
	       a->waker_tid == b->waker_tid && a->state == b->state;
}

/* To find a row, names are hashed; mostly it is one of the last ones. */
static struct offcpu_row *offcpu_row_of(struct offcpu *o, const struct sched_span *span)
{
	const struct sched_task *t = span->task;
	const bool whole = span->state == SPAN_WHOLE;
	const struct task *waker = whole ? scheduler_waker(o->report.env->scheduler, t) : NULL;
	const struct offcpu_kind kind = { t->known, waker, t->tid, t->waker, t->left_state };
	struct offcpu_recent *recent;

	if (!whole || o->by_stack)
		return offcpu_row_get(o, span, waker);
	recent = offcpu_recent_of(o, &kind);
	if (unlikely(!recent->row || !offcpu_kind_equal(&recent->kind, &kind)))
		*recent = (struct offcpu_recent){ kind, offcpu_row_get(o, span, waker) };
	return recent->row;
}

static int offcpu_on_slept(struct report *report, const struct sched_span *span)
{
	struct offcpu *o = container_of(report, struct offcpu, report);
	struct offcpu_row *row = offcpu_row_of(o, span);
	uint64_t ns = span->to - span->from;

	if (!row)
		return -ENOMEM;
	if (unlikely(span->state != SPAN_WHOLE)) {
		row->cut += span->state == SPAN_CUT;
		row->open += span->state == SPAN_OPEN;
		return 0;
	}
	row->total += ns;
	return histogram_add_late(&row->time, &row->late, ns, span->to, &row->max_at);
}

static void offcpu_row_deinit(void *row)
{
	histogram_deinit(&((struct offcpu_row *)row)->time);
}

static int offcpu_open(struct report **ret, struct report_env *env)
{
	struct offcpu *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->report.env = env;
	o->grouping = grouping_find(env->by);
	o->by_stack = !strcmp(env->by, "stack");
	rows_init(&o->sleeps, sizeof(struct offcpu_sleep), NULL);
	rows_init(&o->rows, sizeof(struct offcpu_row), offcpu_row_deinit);
	o->rows.max = ROWS_PAIRS_MAX;
	*ret = &o->report;
	o->index = scheduler_listen(env->scheduler, &(struct sched_listener){
							    .report = &o->report,
							    .slept = offcpu_on_slept,
						    });
	if (o->index < 0)
		return o->index;
	/* After the scheduler, which has to know the switch. */
	if (o->by_stack)
		o->has_stacks = stacks_init(&o->stacks, &o->report, offcpu_on_stack);
	return scheduler_has_wakeups(env->scheduler) ? 0 : -ENODATA;
}

/* The first one if rows stand for stacks. */
static const struct column offcpu_values[] = {
	COLUMN("stack", COLUMN_TEXT, .is_wide = true),
	COLUMN("state", COLUMN_TEXT),
	COLUMN("waker", COLUMN_TEXT),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("total", COLUMN_TIME),
	COLUMN("time", COLUMN_HISTOGRAM),
	COLUMN("max-at", COLUMN_AT, .adds = ADDS_AT, .of = "time"),
	COLUMN("cut", COLUMN_COUNT),
	COLUMN("open", COLUMN_COUNT),
};

static int offcpu_put_row(struct offcpu *o, struct table *t, struct offcpu_row *row)
{
	if (histogram_settle(&row->time, &row->late) < 0)
		return -ENOMEM;
	if (o->by_stack)
		table_put_stack(t, o->report.env, row->stack);
	else
		group_put(t, o->grouping, &row->group);
	table_put_text(t, (struct text){ &row->state, 1 });
	table_put_text(t, row->waker);
	table_put_count(t, row->time.count);
	table_put_count(t, row->total);
	table_put_histogram(t, &row->time);
	table_put_count(t, row->max_at);
	table_put_count(t, row->cut);
	table_put_count(t, row->open);
	return 0;
}

static int offcpu_close(struct report *report, struct table **ret)
{
	struct offcpu *o = container_of(report, struct offcpu, report);
	struct table *t;
	int r = o->by_stack
			? table_new(&t, "offcpu", offcpu_values, ARRAY_SIZE(offcpu_values), "total")
			: group_table(&t, "offcpu", o->grouping, offcpu_values + 1,
				      ARRAY_SIZE(offcpu_values) - 1, "total");

	if (r < 0)
		return r;
	*ret = t;
	for (uint32_t i = 0; i < rows_all(&o->rows) && r == 0; i++)
		r = offcpu_put_row(o, t, rows_each(&o->rows, i));
	group_note(t, o->grouping, &o->rows);
	if (o->by_stack && !o->has_stacks)
		table_note(t, "no stacks were recorded: tracectl record -e sched -O stacktrace");
	return r;
}

static void offcpu_free(struct report *report)
{
	struct offcpu *o = container_of(report, struct offcpu, report);

	rows_deinit(&o->rows);
	rows_deinit(&o->sleeps);
	stacks_deinit(&o->stacks);
	free(o);
}

const struct report_kind report_offcpu = {
	.about = {
		.name = "offcpu",
		.summary = "how long tasks slept, in which state, and who woke them",
		.events = "sched",
		.by = offcpu_by,
	},
	.open = offcpu_open,
	.close = offcpu_close,
	.free = offcpu_free,
};
