/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports of a recording that is followed: the tables of each window, as frames. */
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "report/frame.h"
#include "report/scheduler.h"
#include "report/sink.h"
#include "trace/merge.h"

/*
 * At the first FLUSH no event is ripe (index.h). At the second one those before the first one are,
 * which may have come right after the start. They belong to the first whole window.
 */
#define FIRST_FLUSHES 2

struct sink_live {
	struct sink_report report; /* the first member, for the functions of sink.c */
	struct report_options options;
	struct buf frame;
	struct frame_window window;
	unsigned begins;  /* flushes so far, up to FIRST_FLUSHES */
	unsigned flushes; /* in this window */
};

static struct sink_live *to_live(struct sink *sink)
{
	return container_of(container_of(sink, struct sink_report, sink), struct sink_live, report);
}

bool report_is_live(const char *name)
{
	const struct report_kind *kind = report_kind_find(name);

	return kind && kind->renew;
}

static int live_open_reports(struct sink_report *s, struct error *err)
{
	const struct report_options *o = s->env.options;

	for (size_t i = 0; i < o->count; i++) {
		_cleanup_error_ struct error why = ERROR_INIT;
		const struct report_kind *kind = report_kind_find(o->names[i]);
		int r = kind && kind->renew ? report_sink_add(s, kind, &why) : -EINVAL;

		if (r < 0 && r != -ENODATA)
			return why.message ? error_move(err, &why)
					   : error_set(err, r, "there is no report '%s' of windows",
						       o->names[i]);
	}
	return 0;
}

static int live_open(struct sink **ret, const struct sink_env *env, struct error *err)
{
	struct sink_live *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_errno(err, -ENOMEM, "can't begin the report");
	*ret = &s->report.sink;
	r = report_sink_init(&s->report, env, err);
	s->options = *env->options->report;
	s->options.form = REPORT_FRAME;
	s->options.top = FRAME_ROWS_MAX;
	return r < 0 ? r : live_open_reports(&s->report, err);
}

static void live_free(struct sink *sink)
{
	struct sink_live *s = to_live(sink);

	report_sink_deinit(&s->report);
	buf_deinit(&s->frame);
	free(s);
}

static int live_event(struct sink *sink, const struct trace_event *ev, struct error *err)
{
	to_live(sink)->window.events++;
	return report_sink_event(sink, ev, err);
}

static int live_loss(struct sink *sink, uint32_t cpu, uint64_t before_ts, uint64_t after_ts,
		     uint64_t count, struct error *err)
{
	struct sink_live *s = to_live(sink);

	s->window.gaps++;
	if (count != UINT64_MAX)
		s->window.lost += count;
	return report_sink_loss(sink, cpu, before_ts, after_ts, count, err);
}

static int live_put_tables(struct sink_live *s, struct error *err)
{
	struct sink_report *report = &s->report;
	int r = scheduler_split(report->env.scheduler);

	for (size_t i = 0; i < report->count && r == 0; i++) {
		_cleanup_(table_freep) struct table *table = NULL;
		struct report *one = report->reports[i];

		if (one->has_no_events)
			continue;
		r = one->kind->close(one, &table);
		if (r == 0) {
			table_describe(table, one->by, s->window.span_ns);
			r = table_write(table, &s->options, true, &s->frame, err);
		}
	}
	return r;
}

static int live_renew(struct sink_report *s)
{
	int r = 0;

	for (size_t i = 0; i < s->count && r == 0; i++)
		r = s->reports[i]->kind->renew(s->reports[i]);
	if (r == 0)
		r = scheduler_renew(s->env.scheduler);
	/* No row has a task any more. */
	if (r == 0)
		task_table_forget(s->env.info->tasks, s->env.ts);
	s->env.first_ts = s->env.ts;
	return r;
}

/* Writes the window's tables, and begins the next one. */
static int live_end_window(struct sink_live *s, struct error *err)
{
	struct report_env *env = &s->report.env;
	int r;

	s->window.ts = env->ts;
	s->window.span_ns = report_elapsed(env->first_ts, env->ts);
	s->window.cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->window.tables = s->report.tables;
	env->goes_on = true;
	buf_clear(&s->frame);
	buf_append(&s->frame, &s->window, sizeof(s->window));
	r = live_put_tables(s, err);
	if (r == 0)
		r = buf_error(&s->frame);
	if (r == 0)
		frame_put(&s->report.out->buf, FRAME_WINDOW, s->frame.data, s->frame.len);
	if (r == 0)
		r = live_renew(&s->report);
	s->window = (struct frame_window){ 0 };
	s->flushes = 0;
	return report_sink_failed(r, err);
}

static int live_sync(struct sink *sink, struct error *err)
{
	struct sink_live *s = to_live(sink);

	if (s->begins < FIRST_FLUSHES) {
		s->begins++;
		return 0;
	}
	return ++s->flushes < REPORT_WINDOW_FLUSHES ? 0 : live_end_window(s, err);
}

static int live_close(struct sink *sink, const struct export_result *result _unused_,
		      struct error *err)
{
	struct sink_live *s = to_live(sink);
	int r = live_end_window(s, err);

	if (r < 0)
		return r;
	r = output_flush(s->report.out, true);
	return r < 0 ? error_errno(err, r, "can't write the report") : 0;
}

const struct sink_ops report_live_ops = {
	.format = {
		.name = "live",
		.summary = "tables of results, again and again",
		.clocks = report_clocks,
	},
	.has_histograms = true,
	.open = live_open,
	.event = live_event,
	.loss = live_loss,
	.mark = report_sink_mark,
	.sync = live_sync,
	.close = live_close,
	.free = live_free,
};
