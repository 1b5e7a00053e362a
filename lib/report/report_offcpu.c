/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How long tasks slept, in which state, and who woke them. */
#include <errno.h>
#include <stdlib.h>

#include "report/group.h"
#include "report/scheduler.h"

struct offcpu_row {
	struct group group;
	struct text waker; /* a task's name; empty: unknown, the sleep was cut or open */
	char state;
	uint64_t total;
	struct histogram time;
	uint64_t max_at, cut, open;
};

struct offcpu {
	struct report report;
	struct rows rows;
	enum grouping grouping;
	int index;
};

static const char *const offcpu_by[] = { "thread", "comm", "process", NULL };

/* The waker and the state of a sleep that is not whole may be of another one. */
static struct offcpu_row *offcpu_row_of(struct offcpu *o, const struct sched_span *span)
{
	const struct report_env *env = o->report.env;
	const struct sched_task *t = span->task;
	const bool whole = span->state == SPAN_WHOLE;
	const char state = whole ? sched_task_letter(t) : '?';
	struct text waker =
		whole ? report_task_name(report_task(env, t->waker, env->ts), t->waker) : TEXT("");
	struct row_key key = group_key_join(group_key(o->grouping, t->known, t->tid, span->cpu),
					    group_key_of_name(waker));
	struct offcpu_row *row;

	key = group_key_join(key, (struct row_key){ (unsigned char)state, 0 });
	row = rows_get(&o->rows, key);
	if (!row || row->group.used)
		return row;
	group_begin(env, &o->rows, &row->group, o->grouping, t->known, t->tid, span->cpu);
	row->waker = row->group.is_rest ? TEXT("") : waker;
	row->state = row->group.is_rest ? '?' : state;
	return row;
}

static int offcpu_on_slept(struct report *report, const struct sched_span *span)
{
	struct offcpu *o = container_of(report, struct offcpu, report);
	struct offcpu_row *row = offcpu_row_of(o, span);
	uint64_t ns = span->to - span->from;

	if (!row)
		return -ENOMEM;
	row->cut += span->state == SPAN_CUT;
	row->open += span->state == SPAN_OPEN;
	if (span->state != SPAN_WHOLE)
		return 0;
	row->total += ns;
	return histogram_add_at(&row->time, ns, span->to, &row->max_at);
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
	rows_init(&o->rows, sizeof(struct offcpu_row), offcpu_row_deinit);
	*ret = &o->report;
	o->index = scheduler_listen(env->scheduler, &(struct sched_listener){
							    .report = &o->report,
							    .slept = offcpu_on_slept,
						    });
	if (o->index < 0)
		return o->index;
	return scheduler_has_wakeups(env->scheduler) ? 0 : -ENODATA;
}

static const struct column offcpu_values[] = {
	{ "state", COLUMN_TEXT }, { "waker", COLUMN_TEXT },	{ "count", COLUMN_COUNT },
	{ "total", COLUMN_TIME }, { "time", COLUMN_HISTOGRAM }, { "max-at", COLUMN_AT },
	{ "cut", COLUMN_COUNT },  { "open", COLUMN_COUNT },
};

static void offcpu_put_row(struct offcpu *o, struct table *t, const struct offcpu_row *row)
{
	group_put(t, o->grouping, &row->group);
	table_put_text(t, (struct text){ &row->state, 1 });
	table_put_text(t, row->waker);
	table_put_count(t, row->time.count);
	table_put_count(t, row->total);
	table_put_histogram(t, &row->time);
	table_put_count(t, row->max_at);
	table_put_count(t, row->cut);
	table_put_count(t, row->open);
}

static int offcpu_close(struct report *report, struct table **ret)
{
	struct offcpu *o = container_of(report, struct offcpu, report);
	struct table *t;
	int r = group_table(&t, "offcpu", o->grouping, offcpu_values, ARRAY_SIZE(offcpu_values),
			    "total");

	if (r < 0)
		return r;
	*ret = t;
	for (uint32_t i = 0; i < o->rows.count; i++)
		offcpu_put_row(o, t, rows_at(&o->rows, i));
	if (o->rows.rest)
		offcpu_put_row(o, t, o->rows.rest);
	return 0;
}

static void offcpu_free(struct report *report)
{
	struct offcpu *o = container_of(report, struct offcpu, report);

	rows_deinit(&o->rows);
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
