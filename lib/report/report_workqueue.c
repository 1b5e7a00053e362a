/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report `workqueue`: how long work items waited for a worker, and how long they ran. */
#include <errno.h>
#include <stdlib.h>

#include "report/function_text.h"

struct work_row {
	uint64_t function;
	bool is_rest;
	uint64_t begun; /* executions */
	struct histogram delay, run;
	uint64_t max_at, cut, open;
	uint64_t queue_cut, queue_open; /* never queued, if queueing was recorded */
};

/* A work item that is queued, by its address; or one that a worker runs, by the worker's tid. */
struct work_interval {
	struct work_row *row; /* NULL: none */
	uint64_t work, from, mark;
};

struct work_report {
	struct report report;
	struct rows rows; /* of struct work_row, by function */
	struct rows queued, running;
	bool saw_queue;
	struct field_at queue_work, queue_function, start_work, start_function, end_work,
		end_function;
};

static struct work_row *work_row(struct work_report *w, uint64_t function)
{
	struct work_row *row = rows_get(&w->rows, (struct row_key){ function, 0 });

	if (row) {
		row->function = function;
		row->is_rest = row == w->rows.rest;
	}
	return row;
}

/* NULL: there are too many; -ENOMEM. */
static int work_interval(struct rows *rows, uint64_t key, struct work_interval **ret)
{
	struct work_interval *i = rows_get(rows, (struct row_key){ key, 0 });

	if (!i)
		return -ENOMEM;
	*ret = i == rows->rest ? NULL : i;
	return 0;
}

/* An end whose begin was not seen. */
static void work_orphan(const struct work_report *w, struct work_row *row)
{
	if (report_is_whole(w->report.env, 0))
		row->open++;
	else
		row->cut++;
}

static int work_on_queue(struct report *report, const struct trace_event *ev)
{
	struct work_report *w = container_of(report, struct work_report, report);
	uint64_t work = field_at_read(&w->queue_work, &ev->rec);
	struct work_row *row = work_row(w, field_at_read(&w->queue_function, &ev->rec));
	struct work_interval *queued;
	int r = row ? work_interval(&w->queued, work, &queued) : -ENOMEM;

	w->saw_queue = true;
	if (r < 0 || !queued)
		return r;
	/* Work that was queued and is queued again was canceled in between: no event says so. */
	if (queued->row)
		queued->row->cut += !report_is_whole(report->env, queued->mark);
	*queued = (struct work_interval){ row, work, ev->rec.ts, report_mark(report->env) };
	return 0;
}

static int work_end_delay(struct work_report *w, struct work_row *row, uint64_t work)
{
	const struct report_env *env = w->report.env;
	struct work_interval *queued;
	int r = work_interval(&w->queued, work, &queued);

	if (r < 0 || !queued)
		return r;
	if (!queued->row && report_is_whole(env, 0))
		row->queue_open++;
	else if (!queued->row)
		row->queue_cut++;
	else if (report_is_whole(env, queued->mark))
		r = histogram_add(&row->delay, report_elapsed(queued->from, env->ts));
	else
		row->cut++;
	rows_remove(&w->queued, queued);
	return r;
}

static int work_on_start(struct report *report, const struct trace_event *ev)
{
	struct work_report *w = container_of(report, struct work_report, report);
	uint64_t work = field_at_read(&w->start_work, &ev->rec);
	struct work_row *row = work_row(w, field_at_read(&w->start_function, &ev->rec));
	struct work_interval *running;
	int r = row ? work_interval(&w->running, (uint32_t)ev->pid, &running) : -ENOMEM;

	if (r < 0)
		return r;
	row->begun++;
	r = work_end_delay(w, row, work);
	if (r < 0 || !running)
		return r;
	if (running->row)
		running->row->cut++;
	*running = (struct work_interval){ row, work, ev->rec.ts, report_mark(report->env) };
	return 0;
}

static int work_on_end(struct report *report, const struct trace_event *ev)
{
	struct work_report *w = container_of(report, struct work_report, report);
	uint64_t ns, work = field_at_read(&w->end_work, &ev->rec);
	struct work_interval *running;
	struct work_row *row;
	int r = work_interval(&w->running, (uint32_t)ev->pid, &running);

	if (r < 0 || !running)
		return r;
	if (!running->row || running->work != work) {
		row = work_row(w, field_at_read(&w->end_function, &ev->rec));
		if (row)
			work_orphan(w, row);
		return row ? 0 : -ENOMEM;
	}
	row = running->row;
	running->row = NULL;
	if (!report_is_whole(report->env, running->mark)) {
		row->cut++;
		return 0;
	}
	ns = report_elapsed(running->from, ev->rec.ts);
	return histogram_add_at(&row->run, ns, ev->rec.ts, &row->max_at);
}

static void work_row_deinit(void *data)
{
	struct work_row *row = data;

	histogram_deinit(&row->delay);
	histogram_deinit(&row->run);
}

static int work_open(struct report **ret, struct report_env *env)
{
	struct work_report *w = calloc(1, sizeof(*w));
	const bool big = env->big_endian;
	const struct event *queue = NULL, *start = NULL, *end = NULL;

	if (!w)
		return -ENOMEM;
	*ret = &w->report;
	w->report.env = env;
	rows_init(&w->rows, sizeof(struct work_row), work_row_deinit);
	rows_init(&w->queued, sizeof(struct work_interval), NULL);
	rows_init(&w->running, sizeof(struct work_interval), NULL);
	if (!report_on(env, &w->report, "workqueue", "workqueue_execute_start", work_on_start,
		       &start))
		return -ENODATA;
	report_on(env, &w->report, "workqueue", "workqueue_queue_work", work_on_queue, &queue);
	report_on(env, &w->report, "workqueue", "workqueue_execute_end", work_on_end, &end);
	w->queue_work = field_at_find(queue, "work", big);
	w->queue_function = field_at_find(queue, "function", big);
	w->start_work = field_at_find(start, "work", big);
	w->start_function = field_at_find(start, "function", big);
	w->end_work = field_at_find(end, "work", big);
	/* Since Linux 5.6. */
	w->end_function = field_at_find(end, "function", big);
	return 0;
}

static void work_end_all(const struct work_report *w, const struct rows *rows)
{
	for (uint32_t i = 0; i < rows->count; i++) {
		const struct work_interval *interval = rows_at(rows, i);

		if (!interval->row)
			continue;
		if (report_is_whole(w->report.env, interval->mark))
			interval->row->open++;
		else
			interval->row->cut++;
	}
}

static const struct column work_columns[] = {
	COLUMN("function", COLUMN_TEXT),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("total", COLUMN_TIME),
	COLUMN("run", COLUMN_HISTOGRAM),
	COLUMN("delay", COLUMN_HISTOGRAM),
	COLUMN("max-at", COLUMN_AT, .adds = ADDS_AT, .of = "run"),
	COLUMN("cut", COLUMN_COUNT),
	COLUMN("open", COLUMN_COUNT),
};

static void work_put_row(struct table *t, const struct work_report *w, const struct work_row *row)
{
	table_put_function(t, w->report.env, row->function, row->is_rest);
	table_put_count(t, row->begun);
	table_put_count(t, row->run.sum);
	table_put_histogram(t, &row->run);
	table_put_histogram(t, &row->delay);
	table_put_count(t, row->max_at);
	table_put_count(t, row->cut + (w->saw_queue ? row->queue_cut : 0));
	table_put_count(t, row->open + (w->saw_queue ? row->queue_open : 0));
}

static int work_close(struct report *report, struct table **ret)
{
	struct work_report *w = container_of(report, struct work_report, report);
	struct table *t;
	int r = table_new(&t, "workqueue", work_columns, ARRAY_SIZE(work_columns), "total");

	if (r < 0)
		return r;
	*ret = t;
	work_end_all(w, &w->queued);
	work_end_all(w, &w->running);
	for (uint32_t i = 0; i < rows_all(&w->rows); i++)
		work_put_row(t, w, rows_each(&w->rows, i));
	if (!w->saw_queue)
		table_note(t, "workqueue_queue_work was not recorded: delays are unknown");
	return 0;
}

static void work_free(struct report *report)
{
	struct work_report *w = container_of(report, struct work_report, report);

	rows_deinit(&w->rows);
	rows_deinit(&w->queued);
	rows_deinit(&w->running);
	free(w);
}

const struct report_kind report_workqueue = {
	.about = {
		.name = "workqueue",
		.summary = "how long work items waited, and ran, by function",
		.events = "workqueue",
	},
	.open = work_open,
	.close = work_close,
	.free = work_free,
};
