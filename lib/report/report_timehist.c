/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each run of each task, in order of time, with what came before it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report/scheduler.h"

/* A row has ten cells and two names: about 110 bytes. */
#define TIMEHIST_ROWS_MAX 1000000U

/* A task's sleep and wait since its last run. */
struct timehist_before {
	uint64_t wait, delay; /* TABLE_UNKNOWN: cut, open or none */
	int32_t waker;	      /* -1: unknown */
};

struct timehist {
	struct report report;
	struct table *table; /* owned until close() */
	struct rows before;  /* of struct timehist_before, by tid */
	uint64_t rows, left_out, cut, open;
	int index; /* of sched_task.row */
};

static struct timehist_before *timehist_before_of(struct timehist *h, struct sched_task *t)
{
	struct timehist_before *b = t->row[h->index];

	if (likely(b))
		return b;
	b = rows_get(&h->before, (struct row_key){ (uint32_t)t->tid, 0 });
	if (b)
		*b = (struct timehist_before){ TABLE_UNKNOWN, TABLE_UNKNOWN, -1 };
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
	if (span->state != SPAN_WHOLE)
		/* The sleep that is known may be that of an earlier run. */
		b->wait = TABLE_UNKNOWN;
	else if (span->task->preempted)
		b->wait = 0;
	else
		b->waker = span->task->waker;
	return 0;
}

static void timehist_put(struct timehist *h, const struct sched_span *span,
			 const struct timehist_before *b)
{
	const struct sched_task *t = span->task;
	const char letter = sched_task_letter(t);
	struct table *table = h->table;

	table_put_count(table, span->to);
	table_put_number(table, span->cpu);
	table_put_text(table, report_task_name(t->known, t->tid));
	table_put_number(table, t->tid);
	table_put_count(table, b->wait);
	table_put_count(table, b->delay);
	table_put_count(table, span->to - span->from);
	table_put_text(table, (struct text){ &letter, 1 });
	if (b->waker < 0)
		table_put_text(table, TEXT(""));
	else
		table_put_text(table,
			       report_task_name(report_task(h->report.env, b->waker, span->from),
						b->waker));
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

	if (!b)
		return -ENOMEM;
	h->cut += span->state == SPAN_CUT;
	h->open += span->state == SPAN_OPEN;
	if (span->state == SPAN_WHOLE && timehist_is_wanted(h, b)) {
		if (h->rows < TIMEHIST_ROWS_MAX) {
			timehist_put(h, span, b);
			h->rows++;
		} else {
			h->left_out++;
		}
	}
	if (!span->late)
		*b = (struct timehist_before){ TABLE_UNKNOWN, TABLE_UNKNOWN, -1 };
	return 0;
}

static const struct column timehist_columns[] = {
	COLUMN("at", COLUMN_AT),      COLUMN("cpu", COLUMN_NUMBER), COLUMN("task", COLUMN_TEXT),
	COLUMN("tid", COLUMN_NUMBER), COLUMN("wait", COLUMN_TIME),  COLUMN("delay", COLUMN_TIME),
	COLUMN("run", COLUMN_TIME),   COLUMN("state", COLUMN_TEXT), COLUMN("waker", COLUMN_TEXT),
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
	r = table_new(&h->table, "timehist", timehist_columns, ARRAY_SIZE(timehist_columns), NULL);
	if (r < 0)
		return r;
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

	if (h->left_out)
		table_note(h->table,
			   "%" PRIu64 " later runs are left out: use --min, or a shorter "
			   "recording",
			   h->left_out);
	if (h->cut || h->open)
		table_note(h->table, "runs without a row: cut %" PRIu64 ", open %" PRIu64, h->cut,
			   h->open);
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
