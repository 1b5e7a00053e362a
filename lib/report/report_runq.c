/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How scheduling delays are distributed, in log-linear buckets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/group.h"
#include "report/scheduler.h"

/*
 * Each power of two has four rows, and each value below 8 ns one. No bucket of a histogram, which
 * are made in the same way, is in two rows.
 */
#define RUNQ_SUB_BITS 2U
#define RUNQ_BUCKETS ((65U - RUNQ_SUB_BITS) << RUNQ_SUB_BITS)

struct runq_row {
	struct group group;
	struct histogram delays;
};

struct runq {
	struct report report;
	struct rows rows;
	enum grouping grouping;
	bool is_one; /* all delays together: the group means nothing */
	uint64_t cut, open;
	int index; /* of sched_task.row */
};

static const char *const runq_by[] = { "all", "cpu", "thread", "comm", NULL };

static struct runq_row *runq_row_of(struct runq *q, const struct sched_span *span)
{
	struct sched_task *t = span->task;
	struct runq_row *row = t->row[q->index];

	if (likely(row))
		return row;
	if (q->is_one)
		return rows_get(&q->rows, (struct row_key){ 0, 0 });
	row = group_get(q->report.env, &q->rows, q->grouping, t->known, t->tid, span->cpu);
	/* A row by CPU is not the task's own. */
	if (q->grouping != GROUP_CPU)
		t->row[q->index] = row;
	return row;
}

static int runq_on_waited(struct report *report, const struct sched_span *span)
{
	struct runq *q = container_of(report, struct runq, report);
	uint64_t ns = span->to - span->from;
	struct runq_row *row;

	q->cut += span->state == SPAN_CUT;
	q->open += span->state == SPAN_OPEN;
	if (span->state != SPAN_WHOLE)
		return 0;
	row = runq_row_of(q, span);
	if (!row)
		return -ENOMEM;
	return histogram_add(&row->delays, ns);
}

static void runq_row_deinit(void *row)
{
	histogram_deinit(&((struct runq_row *)row)->delays);
}

static int runq_open(struct report **ret, struct report_env *env)
{
	struct runq *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->report.env = env;
	q->is_one = !strcmp(env->by, "all");
	q->grouping = grouping_find(env->by);
	rows_init(&q->rows, sizeof(struct runq_row), runq_row_deinit);
	*ret = &q->report;
	q->index = scheduler_listen(env->scheduler, &(struct sched_listener){
							    .report = &q->report,
							    .waited = runq_on_waited,
						    });
	return MIN(q->index, 0);
}

static unsigned runq_bucket(uint64_t ns)
{
	unsigned shift =
		ns >> RUNQ_SUB_BITS ? 63U - RUNQ_SUB_BITS - (unsigned)__builtin_clzll(ns) : 0;

	return (shift << RUNQ_SUB_BITS) + (unsigned)(ns >> shift);
}

static uint64_t runq_bucket_from(unsigned bucket)
{
	unsigned shift = bucket >> RUNQ_SUB_BITS ? (bucket >> RUNQ_SUB_BITS) - 1 : 0;

	return (uint64_t)(bucket - (shift << RUNQ_SUB_BITS)) << shift;
}

static void runq_put_bucket(struct runq *q, struct table *t, const struct runq_row *row,
			    unsigned bucket, uint64_t count)
{
	if (!q->is_one)
		group_put(t, q->grouping, &row->group);
	table_put_count(t, runq_bucket_from(bucket));
	/* The last value of the bucket. */
	table_put_count(t, runq_bucket_from(bucket + 1) - 1);
	table_put_count(t, count);
	table_put_count(t, TABLE_DERIVED);
}

/* From the least delay's bucket to the largest one's; those in between can be empty. */
static void runq_put_row(struct runq *q, struct table *t, const struct runq_row *row)
{
	const struct histogram *h = &row->delays;
	uint64_t counts[RUNQ_BUCKETS] = { 0 };

	if (!h->count)
		return;
	for (uint32_t i = 0; i < h->used; i++)
		counts[runq_bucket(histogram_bucket_from((uint32_t)(h->buckets[i] >> 48)))] +=
			h->buckets[i] & HISTOGRAM_COUNT_MAX;
	for (unsigned i = runq_bucket(h->min); i <= runq_bucket(h->max); i++)
		runq_put_bucket(q, t, row, i, counts[i]);
}

static const struct column runq_values[] = {
	COLUMN("from", COLUMN_TIME, .adds = ADDS_KEY),
	COLUMN("to", COLUMN_TIME, .adds = ADDS_KEY),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("share", COLUMN_BAR, .adds = ADDS_SHARE, .of = "count"),
};

static int runq_close(struct report *report, struct table **ret)
{
	struct runq *q = container_of(report, struct runq, report);
	struct table *t;
	int r = q->is_one ? table_new(&t, "runq", runq_values, ARRAY_SIZE(runq_values), NULL)
			  : group_table(&t, "runq", q->grouping, runq_values,
					ARRAY_SIZE(runq_values), NULL);

	if (r < 0)
		return r;
	*ret = t;
	for (uint32_t i = 0; i < rows_all(&q->rows); i++)
		runq_put_row(q, t, rows_each(&q->rows, i));
	group_note(t, q->grouping, &q->rows);
	table_total_cut(t, "delays that are not counted", q->cut, q->open);
	if (!scheduler_has_wakeups(report->env->scheduler))
		table_note(t, "no wake-ups were recorded: delays are of preempted tasks only");
	return 0;
}

static void runq_free(struct report *report)
{
	struct runq *q = container_of(report, struct runq, report);

	rows_deinit(&q->rows);
	free(q);
}

const struct report_kind report_runq = {
	.about = {
		.name = "runq",
		.summary = "how long tasks waited for a CPU, as a histogram",
		.events = "sched",
		.by = runq_by,
	},
	.open = runq_open,
	.close = runq_close,
	.free = runq_free,
};
