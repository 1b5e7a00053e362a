/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The report `marks`: how long slices of applications took, and whether their threads ran
 * meanwhile. Slices come from libtraced, from merged files, and from text in the kernel's
 * trace_marker as atrace writes it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/secret_hash.h"
#include "report/slice_stack.h"
#include "report/slice_text.h"

/* Names are cut here. */
#define NAME_MAX_LEN 256U

/* A slice across threads, until its end. */
struct async_slice {
	struct slice_row *row; /* NULL: not open */
	uint64_t from, mark;
};

struct marks_report {
	struct report report;
	struct slices slices;
	struct rows rows;  /* of struct slice_row, by name */
	struct rows async; /* of struct async_slice, by process, name and id */
	uint32_t text_at;  /* offset of a print event's text */
	uint64_t last_ts;  /* of a mark */
};

static struct row_key marks_key_of(struct text text, uint64_t more)
{
	XXH128_hash_t hash =
		XXH3_128bits_withSeed(text.data ?: "", text.len, hash_secret[0] ^ more);

	return (struct row_key){ hash.low64, hash.high64 };
}

static struct slice_row *marks_row(struct marks_report *m, struct text name, bool is_async)
{
	struct slice_row *row;

	name.len = MIN(name.len, NAME_MAX_LEN);
	row = rows_get(&m->rows, marks_key_of(name, is_async));
	if (!row || row->name)
		return row;
	row->name = strndup(name.data ?: "", name.len);
	row->len = (uint32_t)strlen(row->name ?: "");
	row->is_async = is_async;
	row->is_rest = row == m->rows.rest;
	return row->name ? row : NULL;
}

static int marks_report_begin(struct marks_report *m, int32_t tid, struct text name, uint64_t ts,
			      uint64_t end)
{
	struct slice_row *row = marks_row(m, name, false);
	struct slice_thread *t;
	int r = row ? slices_thread(&m->slices, tid, ts, &t) : -ENOMEM;

	if (r == 0 && t)
		slices_begin(&m->slices, t, row, ts, end);
	return r;
}

/* An end without a begin has no name, unless its source knows it. */
static int marks_report_end(struct marks_report *m, int32_t tid, uint64_t ts)
{
	struct slice_thread *t;
	int r = slices_thread(&m->slices, tid, ts, &t);

	if (r == 0 && t)
		r = slices_end(&m->slices, t, ts);
	return r == -ENOENT ? 0 : r;
}

static int marks_async(struct marks_report *m, const struct slice_text *s, uint64_t ts)
{
	const struct report_env *env = m->report.env;
	struct row_key name = marks_key_of(s->name, (uint32_t)s->pid);
	struct row_key key = marks_key_of(s->id, name.a ^ name.b);
	struct async_slice *async = rows_get(&m->async, key);
	struct slice_row *row = marks_row(m, s->name, true);
	bool whole;

	if (!async || !row)
		return -ENOMEM;
	if (async == m->async.rest)
		return 0;
	whole = report_is_whole(env, async->row ? async->mark : 0);
	if (s->kind == SLICE_ASYNC_BEGIN) {
		if (async->row) {
			row->cut += !whole;
			row->open += whole;
		}
		*async = (struct async_slice){ row, ts, report_mark(env) };
		return 0;
	}
	if (!async->row) {
		row->cut += !whole;
		row->open += whole;
		return 0;
	}
	async->row = NULL;
	return slice_row_add(row, async->from, ts, !whole);
}

static int marks_on_print(struct report *report, const struct trace_event *ev)
{
	struct marks_report *m = container_of(report, struct marks_report, report);
	struct slice_text s;
	struct text text;

	if (ev->rec.len <= m->text_at)
		return 0;
	text.data = (const char *)ev->rec.data + m->text_at;
	text.len = (uint32_t)strnlen(text.data, ev->rec.len - m->text_at);
	if (!slice_text_parse(text, &s))
		return 0;
	if (s.kind == SLICE_BEGIN)
		return marks_report_begin(m, ev->pid, s.name, ev->rec.ts, 0);
	if (s.kind == SLICE_END)
		return marks_report_end(m, ev->pid, ev->rec.ts);
	return marks_async(m, &s, ev->rec.ts);
}

static int marks_mark(struct report *report, const struct mark *mark)
{
	struct marks_report *m = container_of(report, struct marks_report, report);
	struct text name = mark->part[PART_NAME];
	struct slice_text s = { SLICE_ASYNC_BEGIN, mark->pid, name, mark->part[PART_ID] };
	uint64_t end;

	m->last_ts = MAX(m->last_ts, mark->ts);
	switch (mark->phase) {
	case PHASE_BEGIN:
		return marks_report_begin(m, mark->tid, name, mark->ts, 0);
	case PHASE_END:
		return marks_report_end(m, mark->tid, mark->ts);
	case PHASE_COMPLETE:
		if (!(mark->has & HAS_DUR) || __builtin_add_overflow(mark->ts, mark->dur, &end))
			return 0;
		return marks_report_begin(m, mark->tid, name, mark->ts, end ?: 1);
	case PHASE_ASYNC_END:
		s.kind = SLICE_ASYNC_END;
		return marks_async(m, &s, mark->ts);
	case PHASE_ASYNC_BEGIN:
		return marks_async(m, &s, mark->ts);
	default:
		return 0;
	}
}

static int marks_on_ran(struct report *report, const struct sched_span *span,
			const struct sched_task *next _unused_)
{
	return slices_ran(&container_of(report, struct marks_report, report)->slices, span);
}

static int marks_on_waited(struct report *report, const struct sched_span *span)
{
	return slices_waited(&container_of(report, struct marks_report, report)->slices, span);
}

static int marks_on_slept(struct report *report, const struct sched_span *span)
{
	return slices_slept(&container_of(report, struct marks_report, report)->slices, span);
}

static void marks_row_deinit(void *data)
{
	struct slice_row *row = data;

	free(row->name);
	histogram_deinit(&row->time);
}

static int marks_open(struct report **ret, struct report_env *env)
{
	struct marks_report *m = calloc(1, sizeof(*m));
	const struct event *print = NULL;
	const struct field *text;

	if (!m)
		return -ENOMEM;
	*ret = &m->report;
	m->report.env = env;
	rows_init(&m->rows, sizeof(struct slice_row), marks_row_deinit);
	rows_init(&m->async, sizeof(struct async_slice), NULL);
	slices_init(&m->slices, env);
	report_on(env, &m->report, "ftrace", "print", marks_on_print, &print);
	text = event_field(print, "buf");
	m->text_at = text ? text->offset : UINT32_MAX;
	return slices_listen(&m->slices, &(struct sched_listener){
						 .report = &m->report,
						 .ran = marks_on_ran,
						 .waited = marks_on_waited,
						 .slept = marks_on_slept,
					 });
}

static const struct column marks_columns[] = {
	COLUMN("slice", COLUMN_TEXT),	COLUMN("kind", COLUMN_TEXT),
	COLUMN("count", COLUMN_COUNT),	COLUMN("total", COLUMN_TIME),
	COLUMN("self", COLUMN_TIME),	COLUMN("time", COLUMN_HISTOGRAM),
	COLUMN("running", COLUMN_TIME), COLUMN("runnable", COLUMN_TIME),
	COLUMN("blocked", COLUMN_TIME), COLUMN("max-at", COLUMN_AT, .adds = ADDS_AT, .of = "time"),
	COLUMN("cut", COLUMN_COUNT),	COLUMN("open", COLUMN_COUNT),
};

static void marks_put_row(struct table *t, const struct slice_row *row, bool has_sched)
{
	bool joined = has_sched && !row->is_async;

	table_put_text(t, row->is_rest ? TEXT("(others)") : (struct text){ row->name, row->len });
	table_put_text(t, row->is_async ? TEXT("async") : TEXT("thread"));
	table_put_count(t, row->time.count);
	table_put_count(t, row->time.sum);
	table_put_count(t, row->is_async ? TABLE_UNKNOWN : row->self);
	table_put_histogram(t, &row->time);
	table_put_count(t, joined ? row->running : TABLE_UNKNOWN);
	table_put_count(t, joined ? row->runnable : TABLE_UNKNOWN);
	table_put_count(t, joined ? row->blocked : TABLE_UNKNOWN);
	table_put_count(t, row->max_at);
	table_put_count(t, row->cut);
	table_put_count(t, row->open);
}

static void marks_end_async(struct marks_report *m)
{
	for (uint32_t i = 0; i < m->async.count; i++) {
		const struct async_slice *async = rows_at(&m->async, i);

		if (!async->row)
			continue;
		if (report_is_whole(m->report.env, async->mark))
			async->row->open++;
		else
			async->row->cut++;
	}
}

static int marks_close(struct report *report, struct table **ret)
{
	struct marks_report *m = container_of(report, struct marks_report, report);
	const bool has_sched = m->slices.has_sched;
	struct table *t;
	int r = slices_close(&m->slices, m->last_ts);

	if (r == 0)
		r = table_new(&t, "marks", marks_columns, ARRAY_SIZE(marks_columns), "total");
	if (r < 0)
		return r;
	*ret = t;
	marks_end_async(m);
	for (uint32_t i = 0; i < rows_all(&m->rows); i++)
		marks_put_row(t, rows_each(&m->rows, i), has_sched);
	if (!has_sched && m->rows.count)
		table_note(t, "sched_switch was not recorded: nobody knows whether threads ran");
	else if (m->rows.count && !scheduler_has_wakeups(report->env->scheduler))
		table_note(t, "no wake-ups were recorded: waits after a sleep count as blocked");
	return 0;
}

static void marks_report_free(struct report *report)
{
	struct marks_report *m = container_of(report, struct marks_report, report);

	slices_deinit(&m->slices);
	rows_deinit(&m->rows);
	rows_deinit(&m->async);
	free(m);
}

const struct report_kind report_marks = {
	.about = {
		.name = "marks",
		.summary = "how long applications' slices took, and whether their threads ran",
		.takes_any = true,
		.events = "sched",
	},
	.open = marks_open,
	.mark = marks_mark,
	.close = marks_close,
	.free = marks_report_free,
};
