/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report `sched`: how long each task ran, and how long it waited for a CPU. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/group.h"
#include "report/scheduler.h"

struct sched_row {
	struct group group;
	uint64_t runtime, runs, migrations;
	struct histogram delay;
	struct histogram_late late;
	uint64_t max_at, cut, open;
};

struct sched_report {
	struct report report;
	struct rows rows;
	enum grouping grouping;
	int index; /* of sched_task.row */
};

static const char *const sched_by[] = { "thread", "comm", "process", "cpu", NULL };

static struct sched_row *sched_row_of(struct sched_report *s, const struct sched_span *span)
{
	struct sched_task *t = span->task;
	struct sched_row *row = t->row[s->index];

	if (likely(row))
		return row;
	row = group_get(s->report.env, &s->rows, s->grouping, t->known, t->tid, span->cpu);
	/* A row by CPU is not the task's own. */
	if (s->grouping != GROUP_CPU)
		t->row[s->index] = row;
	return row;
}

static bool sched_row_takes(struct sched_row *row, const struct sched_span *span)
{
	/* Most spans are whole, and need not touch the end of the row. */
	if (likely(span->state == SPAN_WHOLE))
		return true;
	row->cut += span->state == SPAN_CUT;
	row->open += span->state == SPAN_OPEN;
	return false;
}

/* A span that is cut or open may be of no known CPU. */
static bool sched_has_row(const struct sched_report *s, const struct sched_span *span)
{
	return s->grouping != GROUP_CPU || span->cpu != UINT32_MAX;
}

static int sched_on_ran(struct report *report, const struct sched_span *span,
			const struct sched_task *next _unused_)
{
	struct sched_report *s = container_of(report, struct sched_report, report);
	struct sched_row *row;

	if (!sched_has_row(s, span))
		return 0;
	row = sched_row_of(s, span);
	if (!row)
		return -ENOMEM;
	if (sched_row_takes(row, span)) {
		row->runtime += span->to - span->from;
		row->runs += !span->part;
	}
	return 0;
}

static int sched_on_waited(struct report *report, const struct sched_span *span)
{
	struct sched_report *s = container_of(report, struct sched_report, report);
	uint64_t ns = span->to - span->from;
	struct sched_row *row;

	if (!sched_has_row(s, span))
		return 0;
	row = sched_row_of(s, span);
	if (!row)
		return -ENOMEM;
	/* task.cpu is still where it ran before. */
	row->migrations += span->task->cpu != UINT32_MAX && span->task->cpu != span->cpu;
	if (!sched_row_takes(row, span))
		return 0;
	return histogram_add_late(&row->delay, &row->late, ns, span->to, &row->max_at);
}

static void sched_row_deinit(void *row)
{
	histogram_deinit(&((struct sched_row *)row)->delay);
}

static int sched_open(struct report **ret, struct report_env *env)
{
	struct sched_report *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->report.env = env;
	s->grouping = grouping_find(env->by);
	rows_init(&s->rows, sizeof(struct sched_row), sched_row_deinit);
	*ret = &s->report;
	s->index = scheduler_listen(env->scheduler, &(struct sched_listener){
							    .report = &s->report,
							    .ran = sched_on_ran,
							    .waited = sched_on_waited,
						    });
	return MIN(s->index, 0);
}

static int sched_put_row(struct table *t, struct sched_row *row, enum grouping by)
{
	if (histogram_settle(&row->delay, &row->late) < 0)
		return -ENOMEM;
	group_put(t, by, &row->group);
	table_put_count(t, row->runtime);
	table_put_count(t, row->runs);
	table_put_count(t, row->migrations);
	table_put_histogram(t, &row->delay);
	table_put_count(t, row->max_at);
	table_put_count(t, row->cut);
	table_put_count(t, row->open);
	return 0;
}

static const struct column sched_values[] = {
	COLUMN("runtime", COLUMN_TIME),
	COLUMN("runs", COLUMN_COUNT),
	COLUMN("migrations", COLUMN_COUNT),
	COLUMN("delay", COLUMN_HISTOGRAM),
	COLUMN("max-at", COLUMN_AT, .adds = ADDS_AT, .of = "delay"),
	COLUMN("cut", COLUMN_COUNT),
	COLUMN("open", COLUMN_COUNT),
};

static int sched_close(struct report *report, struct table **ret)
{
	struct sched_report *s = container_of(report, struct sched_report, report);
	struct table *t;
	int r = group_table(&t, "sched", s->grouping, sched_values, ARRAY_SIZE(sched_values),
			    "runtime");

	if (r < 0)
		return r;
	*ret = t;
	for (uint32_t i = 0; i < s->rows.count && r == 0; i++)
		r = sched_put_row(t, rows_at(&s->rows, i), s->grouping);
	if (s->rows.rest && r == 0)
		r = sched_put_row(t, s->rows.rest, s->grouping);
	group_note(t, s->grouping, &s->rows);
	if (!scheduler_has_wakeups(report->env->scheduler))
		table_note(t, "no wake-ups were recorded: delays are of preempted tasks only");
	return r;
}

static int sched_renew(struct report *report)
{
	struct sched_report *s = container_of(report, struct sched_report, report);

	rows_clear(&s->rows);
	return 0;
}

static void sched_free(struct report *report)
{
	struct sched_report *s = container_of(report, struct sched_report, report);

	rows_deinit(&s->rows);
	free(s);
}

const struct report_kind report_sched = {
	.about = {
		.name = "sched",
		.summary = "how long tasks ran, and waited for a CPU",
		.is_usual = true,
		.events = "sched",
		.by = sched_by,
	},
	.open = sched_open,
	.close = sched_close,
	.renew = sched_renew,
	.free = sched_free,
};
