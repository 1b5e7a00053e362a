/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reports as a sink: passes each event to those who asked for its kind, and writes their tables at
 * the end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/plural.h"
#include "base/vec.h"
#include "export/selection.h"
#include "report/scheduler.h"
#include "report/sink.h"
#include "trace/merge.h"

/*
 * Adds to the end of a chain. Once is enough: a damaged recording may have formats of one name, and
 * who asks for each of them asks for the first several times.
 */
static bool dispatch_add(struct dispatch *d, uint32_t *end, struct report *r,
			 report_handler handler)
{
	for (uint32_t at = *end; at; at = d->entries[at - 1].next)
		if (d->entries[at - 1].report == r && d->entries[at - 1].handler == handler)
			return true;
	if (vec_push(d->entries, d->count, d->cap, (struct dispatch_entry){ handler, r, 0 }) < 0) {
		d->failed = true;
		return false;
	}
	while (*end)
		end = &d->entries[*end - 1].next;
	*end = (uint32_t)d->count;
	return true;
}

/* only: NULL, or those requests alone. */
static int dispatch_call(const struct dispatch *d, uint32_t at, const struct trace_event *ev,
			 const struct report *only)
{
	int r = 0;

	while (at && likely(r == 0)) {
		const struct dispatch_entry *e = &d->entries[at - 1];

		if (likely(!only) || e->report == only)
			r = e->handler(e->report, ev);
		at = e->next;
	}
	return r;
}

bool report_on(struct report_env *env, struct report *r, const char *system, const char *name,
	       report_handler handler, const struct event **ret)
{
	struct dispatch *d = env->dispatch;
	const struct event *ev = event_table_find_name(d->events, system, name);

	if (!ev || !dispatch_add(d, &d->first[ev->id], r, handler))
		return false;
	if (ret)
		*ret = ev;
	return true;
}

void report_on_all(struct report_env *env, struct report *r, report_handler handler)
{
	dispatch_add(env->dispatch, &env->dispatch->all, r, handler);
}

const struct task *report_task(const struct report_env *env, int32_t tid, uint64_t ts)
{
	return tid > 0 ? task_table_find(env->info->tasks, tid, ts) : NULL;
}

struct text report_task_name(const struct task *task, int32_t tid)
{
	const char *name = !tid ? "idle" : task && *task->comm ? task->comm : "<...>";

	return (struct text){ name, (uint32_t)strlen(name) };
}

const struct report_kind *report_kind_find(const char *name)
{
	for (size_t i = 0; i < report_kind_count; i++)
		if (!strcmp(report_kinds[i]->about.name, name))
			return report_kinds[i];
	return NULL;
}

static int report_unknown(const char *name, struct error *err)
{
	_cleanup_buf_ struct buf all = BUF_INIT;

	for (size_t i = 0; i < report_kind_count; i++)
		buf_printf(&all, "%s%s", i ? ", " : "", report_kinds[i]->about.name);
	error_set(err, -EINVAL, "there is no report '%s'", name);
	return error_hint(err, "there are %s", buf_string(&all) ?: "?");
}

/* NULL: this report can't be made by `by`. */
static const char *kind_choose(const struct report_kind *kind, const char *by)
{
	const char *const *choice = kind->about.by;

	while (by && choice && *choice && strcmp(*choice, by) != 0)
		choice++;
	return choice ? *choice : NULL;
}

static int report_check_by(const struct report_kind *kind, const char *by, struct error *err)
{
	_cleanup_buf_ struct buf all = BUF_INIT;

	if (!by || kind_choose(kind, by))
		return 0;
	for (const char *const *c = kind->about.by; c && *c; c++)
		buf_printf(&all, "%s%s", all.len ? ", " : "", *c);
	error_set(err, -EINVAL, "the report %s is not made by '%s'", kind->about.name, by);
	return all.len ? error_hint(err, "it is made by %s", buf_string(&all) ?: "?") : -EINVAL;
}

/* The report of one thread, and only that, takes a thread. */
static int report_check_task(const struct report_options *o, struct error *err)
{
	const struct report_kind *kind = NULL;

	for (size_t i = 0; i < o->count; i++) {
		const struct report_kind *other = report_kind_find(o->names[i]);

		if (other && other->about.needs_task)
			kind = other;
	}
	if (!kind == !o->task)
		return 0;
	if (kind) {
		error_set(err, -EINVAL, "the report %s is of one thread", kind->about.name);
		return error_hint(err, "name the thread: --task TID|NAME");
	}
	error_set(err, -EINVAL, "only the report critpath is of one thread");
	return error_hint(err, "make that report alone, or omit --task");
}

int report_options_check(const struct report_options *o, struct error *err)
{
	int r = 0;

	if (o->count > REPORTS_MAX)
		return error_set(err, -EINVAL, "more than %d reports", REPORTS_MAX);
	for (size_t i = 0; i < o->count; i++) {
		const struct report_kind *kind = report_kind_find(o->names[i]);
		_cleanup_error_ struct error why = ERROR_INIT;

		if ((kind ? report_check_by(kind, o->by, &why)
			  : report_unknown(o->names[i], &why)) < 0)
			r = error_add(err, &why);
	}
	return r == 0 ? report_check_task(o, err) : r;
}

static int report_sink_open_one(struct sink_report *s, const struct report_kind *kind)
{
	struct report *report = NULL;
	int r = vec_reserve(s->reports, s->count, s->cap, 1);

	if (r < 0)
		return r;
	r = kind->open(&report, &s->env);
	/* It may have asked for events already. */
	if (report) {
		report->kind = kind;
		report->by = s->env.by;
		report->has_no_events = r == -ENODATA;
		s->reports[s->count++] = report;
		s->tables += r == 0;
	}
	return r == 0 && s->dispatch.failed ? -ENOMEM : r;
}

int report_sink_add(struct sink_report *s, const struct report_kind *kind, struct error *err)
{
	size_t count = kind->count ? kind->count(&s->env) : 1;
	int r = count ? 0 : -ENODATA;

	s->env.is_first = !s->count;
	s->env.by = kind_choose(kind, s->env.options ? s->env.options->by : NULL)
			    ?: kind_choose(kind, NULL);
	for (s->env.number = 0; s->env.number < count && r == 0; s->env.number++)
		r = report_sink_open_one(s, kind);
	if (r == -ENODATA) {
		error_set(err, r, "the recording has no events for the report %s",
			  kind->about.name);
		return error_hint(err, "record them: tracectl record -t 10s %s%s -o out.traced",
				  *kind->about.events == '-' ? "" : "-e ", kind->about.events);
	}
	return r < 0 ? error_errno(err, r, "can't begin the report %s", kind->about.name) : 0;
}

/* The usual reports that the recording has events for. */
static int report_sink_open_overview(struct sink_report *s, struct error *err)
{
	for (size_t i = 0; i < report_kind_count; i++) {
		_cleanup_error_ struct error why = ERROR_INIT;
		int r = report_kinds[i]->about.is_usual ? report_sink_add(s, report_kinds[i], &why)
							: 0;

		if (r < 0 && r != -ENODATA)
			return error_move(err, &why);
	}
	if (s->tables)
		return 0;
	error_set(err, -ENODATA, "the recording has no events for a report");
	return error_hint(err, "record some: tracectl record -t 10s -e sched -e irq -o out.traced");
}

/* The recording lacks the events of some reports: says of which. */
static int report_sink_open_named(struct sink_report *s, struct error *err)
{
	const struct report_options *o = s->env.options;
	_cleanup_buf_ struct buf lacking = BUF_INIT;
	size_t count = 0;

	for (size_t i = 0; i < o->count; i++) {
		_cleanup_error_ struct error why = ERROR_INIT;
		int r = report_sink_add(s, report_kind_find(o->names[i]), &why);

		if (r < 0 && r != -ENODATA)
			return error_move(err, &why);
		if (r == 0)
			continue;
		error_add(err, &why);
		buf_printf(&lacking, "%s%s", count++ ? "," : "", o->names[i]);
	}
	if (count > 1)
		error_hint(err, "record them: tracectl record -t 10s --report %s -o out.traced",
			   buf_string(&lacking) ?: "NAME");
	return count ? -ENODATA : 0;
}

static int report_sink_open_all(struct sink_report *s, struct error *err)
{
	int r = report_options_check(s->env.options, err);

	if (r < 0)
		return r;
	return s->env.options->count ? report_sink_open_named(s, err)
				     : report_sink_open_overview(s, err);
}

void report_sink_deinit(struct sink_report *s)
{
	for (size_t i = 0; i < s->count; i++)
		s->reports[i]->kind->free(s->reports[i]);
	free(s->reports);
	scheduler_free(s->env.scheduler);
	printer_free(s->env.printer);
	free(s->dispatch.first);
	free(s->dispatch.entries);
}

void report_sink_free(struct sink *sink)
{
	struct sink_report *s = container_of(sink, struct sink_report, sink);

	report_sink_deinit(s);
	free(s);
}

int report_sink_init(struct sink_report *s, const struct sink_env *env, struct error *err)
{
	s->out = env->out;
	s->gaps = env->gaps;
	s->dispatch.events = env->info->events;
	s->dispatch.first = calloc(EVENT_IDS, sizeof(*s->dispatch.first));
	s->env = (struct report_env){
		.info = env->info,
		.options = env->options->report,
		.watch = env->options->watch,
		.selection = env->selection,
		.is_part = env->selection && !env->options->selection.is_whole,
		.out = env->out,
		.dispatch = &s->dispatch,
		.big_endian = env->info->layout.big_endian,
	};
	if (!s->dispatch.first || scheduler_new(&s->env.scheduler, &s->env) < 0 ||
	    printer_new(&s->env.printer, env->info->events) < 0)
		return error_errno(err, -ENOMEM, "can't begin the report");
	return 0;
}

/* Tables come at the end of the last one of several machines' exports. */
static bool report_sink_is_last(const struct sink_report *s)
{
	return !s->env.options->hosts || s->env.options->hosts->is_last;
}

/* An empty table would hide that a name is wrong. */
static int report_sink_explain_nothing(const struct sink_report *s, struct error *err)
{
	_cleanup_buf_ struct buf part = BUF_INIT;

	selection_describe(s->env.selection, &part);
	error_set(err, -ENODATA, "not one event of the recording is in that part (%s)",
		  buf_string(&part) ?: "?");
	return error_hint(err, "'tracectl report counts IN' lists the recording's events");
}

/* Marks are selected by other things than the names of events. */
static bool report_sink_takes_marks(const struct sink_report *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->reports[i]->kind->mark)
			return true;
	return false;
}

static int report_sink_open(struct sink **ret, const struct sink_env *env, struct error *err)
{
	struct sink_report *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_errno(err, -ENOMEM, "can't begin the report");
	*ret = &s->sink;
	r = report_sink_init(s, env, err);
	if (r == 0)
		r = report_sink_open_all(s, err);
	if (r == 0 && s->env.is_part && !selection_knows_kind(s->env.selection) &&
	    !report_sink_takes_marks(s))
		r = report_sink_explain_nothing(s, err);
	if (r == 0 && report_sink_is_last(s) && s->env.options->form == REPORT_JSON)
		tables_begin_json(&(struct tables_head){ .clock = env->info->header->trace_clock,
							 .host = s->env.options->host,
							 .is_further = s->env.options->is_further },
				  &s->out->buf);
	return r;
}

static void report_sink_see_losses(struct sink_report *s)
{
	s->env.losses = s->gaps->met - s->before + s->losses;
	s->env.losses_open = s->gaps->open;
}

int report_sink_failed(int r, struct error *err)
{
	return r < 0 ? error_errno(err, r, "can't go on with the report") : 0;
}

/* Intervals at the begin of a part are open, not cut by what was lost long before. */
static void report_sink_begin(struct sink_report *s, uint64_t ts)
{
	s->env.first_ts = ts;
	if (s->env.selection)
		s->before = s->gaps->met - s->gaps->open;
}

_hot_ int report_sink_event(struct sink *sink, const struct trace_event *ev, struct error *err)
{
	struct sink_report *s = container_of(sink, struct sink_report, sink);
	const struct report *only = NULL;
	int r;

	if (unlikely(!s->env.first_ts))
		report_sink_begin(s, ev->rec.ts);
	s->env.ts = ev->rec.ts;
	report_sink_see_losses(s);
	/* A task's runs and waits follow from what all tasks did. */
	if (unlikely(s->env.selection)) {
		const bool selected = selection_has_kind(s->env.selection, ev);

		s->env.has_selected |= selected;
		only = selected ? NULL : scheduler_report(s->env.scheduler);
	}
	r = dispatch_call(&s->dispatch, s->dispatch.first[ev->id], ev, only);
	if (unlikely(s->dispatch.all) && r == 0)
		r = dispatch_call(&s->dispatch, s->dispatch.all, ev, only);
	return likely(r == 0) ? 0 : report_sink_failed(r, err);
}

/* Losses that only the kernel's counts tell come after all events; after_ts is then UINT64_MAX. */
int report_sink_loss(struct sink *sink, uint32_t cpu, uint64_t before_ts _unused_,
		     uint64_t after_ts, uint64_t count _unused_, struct error *err)
{
	struct sink_report *s = container_of(sink, struct sink_report, sink);
	int r;

	s->losses++;
	report_sink_see_losses(s);
	if (after_ts != UINT64_MAX)
		s->env.ts = after_ts;
	r = scheduler_loss(s->env.scheduler, cpu);
	for (size_t i = 0; i < s->count && r == 0; i++)
		if (s->reports[i]->kind->loss)
			r = s->reports[i]->kind->loss(s->reports[i], cpu);
	return report_sink_failed(r, err);
}

int report_sink_mark(struct sink *sink, const struct mark *mark, struct error *err)
{
	struct sink_report *s = container_of(sink, struct sink_report, sink);
	int r = 0;

	report_sink_see_losses(s);
	for (size_t i = 0; i < s->count && r == 0; i++) {
		if (!s->reports[i]->kind->mark)
			continue;
		/* Frames and metadata have no time, and are in each part. */
		s->env.has_selected |= s->env.selection && mark->ts &&
				       selection_has_mark(s->env.selection, mark, true);
		r = s->reports[i]->kind->mark(s->reports[i], mark);
	}
	return report_sink_failed(r, err);
}

/* Adds up what the exports of several machines have. */
static struct tables_head report_sink_head(const struct sink_report *s,
					   const struct export_result *result)
{
	struct report_hosts *h = s->env.options->hosts;
	struct tables_head head = { .first_ns = s->env.first_ts,
				    .span_ns = result->span_ns,
				    .events = result->events,
				    .lost = result->lost,
				    .gaps = export_result_gaps(result),
				    .incomplete = result->incomplete,
				    .marks_lost = result->marks_lost };

	if (!h)
		return head;
	if (head.events && (!h->events || head.first_ns < h->first_ns))
		h->first_ns = head.first_ns;
	h->last_ns = MAX(h->last_ns, head.first_ns + head.span_ns);
	head.first_ns = h->first_ns;
	head.span_ns = h->last_ns - h->first_ns;
	head.events = h->events += head.events;
	head.lost = h->lost += head.lost;
	head.gaps = h->gaps += head.gaps;
	head.incomplete = h->incomplete |= head.incomplete;
	head.marks_lost = h->marks_lost |= head.marks_lost;
	return head;
}

/* The first line of the page that has no report's name: how much there is, and what was lost. */
static void report_sink_put_page_head(const struct sink_report *s, const struct tables_head *head)
{
	const struct report_options *o = s->env.options;
	struct buf *out = &s->out->buf;

	if (o->count || o->form != REPORT_TEXT)
		return;
	format_duration(head->span_ns, out);
	buf_printf(out, ", %" PRIu64 " event%s, ", head->events, plural_s(head->events));
	if (head->lost)
		buf_printf(out, "%" PRIu64 " lost", head->lost);
	else if (head->gaps)
		buf_printf(out, "lost at %" PRIu64 " place%s (count unknown)", head->gaps,
			   plural_s(head->gaps));
	else
		buf_puts(out, head->incomplete ? "incomplete" : "none lost");
	buf_puts(out, "\n\n");
}

static int report_sink_write(struct sink_report *s, struct table *t,
			     const struct report_about *about, bool first, struct error *err)
{
	struct report_options o = *s->env.options;

	if (!o.count && !o.sort)
		o.sort = about->page_sort;
	return table_write(t, &o, first, &s->out->buf, err);
}

static int report_sink_close(struct sink *sink, const struct export_result *result,
			     struct error *err)
{
	struct sink_report *s = container_of(sink, struct sink_report, sink);
	struct tables_head head = report_sink_head(s, result);
	_cleanup_buf_ struct buf part = BUF_INIT;
	const bool is_last = report_sink_is_last(s);
	bool first = true;
	int r = scheduler_close(s->env.scheduler);

	if (r < 0)
		return report_sink_failed(r, err);
	if (s->env.is_part && !s->env.has_selected)
		return report_sink_explain_nothing(s, err);
	if (is_last)
		report_sink_put_page_head(s, &head);
	for (size_t i = 0; i < s->count && r == 0; i++) {
		_cleanup_(table_freep) struct table *table = NULL;

		if (s->reports[i]->has_no_events)
			continue;
		r = s->reports[i]->kind->close(s->reports[i], &table);
		if (r == -ESRCH)
			return error_set(err, r, "the recording has no thread %s",
					 s->env.options->task);
		if (r < 0)
			return report_sink_failed(r, err);
		if (!is_last)
			continue;
		/* Formats are recorded without events of them, too. */
		if (!s->env.options->count && table_is_empty(table))
			continue;
		if (table_is_empty(table))
			table_note(table, "no rows: nothing of this kind was recorded%s",
				   s->env.is_part ? " in that part" : "");
		scheduler_note(s->env.scheduler, s->reports[i], table);
		table_describe(table, s->reports[i]->by, head.span_ns);
		table_spill(table, s->out);
		r = report_sink_write(s, table, &s->reports[i]->kind->about, first, err);
		first = false;
	}
	if (s->env.is_part)
		selection_describe(s->env.selection, &part);
	head.part = part.len ? buf_string(&part) : NULL;
	if (r == 0 && is_last && s->env.options->form == REPORT_JSON)
		tables_end_json(&head, &s->out->buf);
	else if (r == 0 && is_last && s->env.options->form == REPORT_TEXT)
		tables_end_text(&head, &s->out->buf);
	if (r == 0) {
		r = output_flush(s->out, true);
		if (r < 0)
			return error_errno(err, r, "can't write the report");
	}
	return r;
}

const char *const report_clocks[] = { "local", "global", "mono",   "mono_raw", "boot",
				      "tai",   "perf",	 "uptime", NULL };

const struct sink_ops report_sink_ops = {
	.format = {
		.name = "report",
		.summary = "tables of results",
		.clocks = report_clocks,
		.at_end = true,
		.for_terminal = true,
	},
	.selects = true,
	.has_histograms = true,
	.open = report_sink_open,
	.event = report_sink_event,
	.loss = report_sink_loss,
	.mark = report_sink_mark,
	.close = report_sink_close,
	.free = report_sink_free,
};
