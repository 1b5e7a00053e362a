/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each run of each task, in order of time, with what came before it. */
#include <errno.h>
#include <stdlib.h>

#include "report/scheduler.h"

/*
 * Rows that are kept where they can't be written as they come. A row has nine cells and two names,
 * about 100 bytes, and to sort them there are twice as many for a while, and a copy of the half.
 */
#define TIMEHIST_ROWS_MAX 100000U

#define TIMEHIST_COLUMNS 9

/* A task's sleep and wait since its last run. */
struct timehist_before {
	struct text name;	       /* the task's */
	uint64_t wait, delay;	       /* TABLE_UNKNOWN: cut, open or none */
	int32_t waker;		       /* -1: unknown */
	const struct task *waker_task; /* NULL: unknown */
};

struct timehist {
	struct report report;
	struct table *table; /* owned until close() */
	struct rows before;  /* of struct timehist_before, by tid */
	uint64_t cut, open;
	int index; /* of sched_task.row */
};

static void timehist_forget(struct timehist_before *b)
{
	b->wait = b->delay = TABLE_UNKNOWN;
	b->waker = -1;
	b->waker_task = NULL;
}

static struct timehist_before *timehist_before_of(struct timehist *h, struct sched_task *t)
{
	struct timehist_before *b = t->row[h->index];

	if (likely(b))
		return b;
	b = rows_get(&h->before, (struct row_key){ (uint32_t)t->tid, 0 });
	if (b) {
		timehist_forget(b);
		b->name = report_task_name(t->known, t->tid);
	}
	t->row[h->index] = b;
	return b;
}

static uint64_t timehist_time_of(const struct sched_span *span)
{
	return span->state == SPAN_WHOLE ? span->to - span->from : TABLE_UNKNOWN;
}

static int timehist_on_slept(struct report *report, const struct sched_span *span)
{
	struct timehist *h = container_of(report, struct timehist, report);
	struct timehist_before *b = timehist_before_of(h, span->task);

	if (!b)
		return -ENOMEM;
	b->wait = timehist_time_of(span);
	return 0;
}

static int timehist_on_waited(struct report *report, const struct sched_span *span)
{
	struct timehist *h = container_of(report, struct timehist, report);
	struct timehist_before *b = timehist_before_of(h, span->task);

	if (!b)
		return -ENOMEM;
	b->delay = timehist_time_of(span);
	b->waker = -1;
	b->waker_task = NULL;
	if (span->state != SPAN_WHOLE)
		/* The sleep that is known may be that of an earlier run. */
		b->wait = TABLE_UNKNOWN;
	else if (span->task->preempted)
		b->wait = 0;
	else {
		b->waker = span->task->waker;
		b->waker_task = scheduler_waker(h->report.env->scheduler, span->task);
	}
	return 0;
}

static int timehist_put(struct timehist *h, const struct sched_span *span,
			const struct timehist_before *b)
{
	const struct sched_task *t = span->task;
	const char letter = sched_task_letter(t);
	union cell_value values[TIMEHIST_COLUMNS];

	/* An initializer would clear the array first. */
	values[0].count = span->to;
	values[1].number = span->cpu;
	values[2].text = b->name;
	values[3].number = t->tid;
	values[4].count = b->wait;
	values[5].count = b->delay;
	values[6].count = span->to - span->from;
	values[7].text = (struct text){ &letter, 1 };
	values[8].text = b->waker < 0 ? TEXT("") : report_task_name(b->waker_task, b->waker);
	return table_put_row(h->table, values);
}

/* --min is about delays here, unless --sort names another column; the table then applies it. */
static bool timehist_is_wanted(const struct timehist *h, const struct timehist_before *b)
{
	const struct report_options *o = h->report.env->options;

	return !o->min_ns || o->sort || (b->delay != TABLE_UNKNOWN && b->delay >= o->min_ns);
}

static int timehist_on_ran(struct report *report, const struct sched_span *span,
			   const struct sched_task *next _unused_)
{
	struct timehist *h = container_of(report, struct timehist, report);
	struct timehist_before *b = timehist_before_of(h, span->task);
	int r = 0;

	if (!b)
		return -ENOMEM;
	h->cut += span->state == SPAN_CUT;
	h->open += span->state == SPAN_OPEN;
	if (span->state == SPAN_WHOLE && timehist_is_wanted(h, b))
		r = timehist_put(h, span, b);
	if (!span->late)
		timehist_forget(b);
	return r;
}

static const struct column timehist_columns[TIMEHIST_COLUMNS] = {
	COLUMN("at", COLUMN_AT, .width = 13),
	COLUMN("cpu", COLUMN_NUMBER),
	COLUMN("task", COLUMN_TEXT, .width = 15),
	COLUMN("tid", COLUMN_NUMBER, .width = 7),
	COLUMN("wait", COLUMN_TIME, .width = 8),
	COLUMN("delay", COLUMN_TIME, .width = 8),
	COLUMN("run", COLUMN_TIME, .width = 8),
	COLUMN("state", COLUMN_TEXT),
	COLUMN("waker", COLUMN_TEXT),
};

static int timehist_open(struct report **ret, struct report_env *env)
{
	struct timehist *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	h->report.env = env;
	rows_init(&h->before, sizeof(struct timehist_before), NULL);
	*ret = &h->report;
	r = table_new(&h->table, "timehist", timehist_columns, TIMEHIST_COLUMNS, NULL);
	if (r < 0)
		return r;
	table_total_cut(h->table, "", 0, 0);
	table_bound(h->table, env->options, TIMEHIST_ROWS_MAX, env->is_first ? env->out : NULL);
	/* Without a selected event the report is an error, and no row may be out by then. */
	table_hold(h->table, env->is_part ? &env->has_selected : NULL);
	h->index = scheduler_listen(env->scheduler, &(struct sched_listener){
							    .report = &h->report,
							    .ran = timehist_on_ran,
							    .waited = timehist_on_waited,
							    .slept = timehist_on_slept,
						    });
	return MIN(h->index, 0);
}

static int timehist_close(struct report *report, struct table **ret)
{
	struct timehist *h = container_of(report, struct timehist, report);

	table_total_cut(h->table, "runs without a row", h->cut, h->open);
	*ret = TAKE_PTR(h->table);
	return 0;
}

static void timehist_free(struct report *report)
{
	struct timehist *h = container_of(report, struct timehist, report);

	rows_deinit(&h->before);
	table_free(h->table);
	free(h);
}

const struct report_kind report_timehist = {
	.about = {
		.name = "timehist",
		.summary = "each run of each task, in order of time",
		.events = "sched",
	},
	.open = timehist_open,
	.close = timehist_close,
	.free = timehist_free,
};
