/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/watch.h"

#include <endian.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "export/output.h"
#include "proto/control.pb-c.h"
#include "report/irq_events.h"
#include "report/per_cpu.h"
#include "report/scheduler.h"
#include "report/sink.h"
#include "report/softirq.h"
#include "report/watch_slices.h"

#define IRQ_NAME_MAX 48

/* One condition, and how often it was met since the last part of the stream. */
struct watched {
	struct watch_condition condition;
	const struct event *event; /* of WATCH_EVENT */
	uint64_t last_ts;
	uint32_t fired;
	uint64_t more; /* beyond WATCH_BURST */
};

struct watch_irq {
	char name[IRQ_NAME_MAX];
};

struct watch {
	struct report report;
	struct watched all[WATCH_CONDITIONS_MAX];
	size_t count;
	struct per_cpu open;
	struct rows irqs; /* of struct watch_irq, by number */
	struct irq_events irq, softirq;
	struct watch_slices slices;
	uint32_t text_at; /* of a print event */
	bool has_delay;	  /* a condition is WATCH_DELAY */
	struct buf text;
};

static bool watch_matches(const char *glob, struct text name)
{
	char copy[64];
	size_t len = MIN((size_t)name.len, sizeof(copy) - 1);

	if (!glob)
		return true;
	memcpy(copy, name.data, len);
	copy[len] = '\0';
	return fnmatch(glob, copy, 0) == 0;
}

static int watch_put(struct watch *w, Traced__Control__Firing *firing)
{
	struct buf *out = &w->report.env->out->buf;
	size_t len = traced__control__firing__get_packed_size(firing);
	uint32_t head;
	uint8_t *p = (uint8_t *)buf_reserve(out, sizeof(head) + len);

	if (!p)
		return -ENOMEM;
	head = htole32((uint32_t)len);
	memcpy(p, &head, sizeof(head));
	traced__control__firing__pack(firing, p + sizeof(head));
	out->len += sizeof(head) + len;
	return 0;
}

static int watch_fire(struct watch *w, size_t i, uint64_t ts, uint64_t value, int32_t cpu,
		      int32_t tid, struct text what)
{
	struct watched *c = &w->all[i];
	Traced__Control__Firing firing = TRACED__CONTROL__FIRING__INIT;

	c->last_ts = ts;
	if (c->fired == WATCH_BURST) {
		c->more++;
		return 0;
	}
	c->fired++;
	firing.condition = (uint32_t)i;
	firing.at_ns = ts;
	firing.value = value;
	firing.cpu = cpu;
	firing.tid = tid;
	firing.what.data = (uint8_t *)(uintptr_t)what.data;
	firing.what.len = MIN(what.len, WATCH_WHAT_MAX);
	return watch_put(w, &firing);
}

static int watch_on_waited(struct report *report, const struct sched_span *span)
{
	struct watch *w = container_of(report, struct watch, report);
	const uint64_t ns = span->to - span->from;
	int r = 0;

	if (unlikely(span->state != SPAN_WHOLE))
		return 0;
	for (size_t i = 0; i < w->count && r == 0; i++) {
		const struct watch_condition *c = &w->all[i].condition;
		const int32_t tid = span->task->tid;
		struct text name;

		if (c->kind != WATCH_DELAY || ns <= c->above || (c->tid && c->tid != tid) ||
		    (c->cpu >= 0 && (uint32_t)c->cpu != span->cpu))
			continue;
		/* A task that the scheduler remembers may be freed while the stream goes on. */
		name = report_task_name(report_task(report->env, tid, span->to), tid);
		if (watch_matches(c->comm, name))
			r = watch_fire(w, i, span->to, ns, (int32_t)span->cpu, tid, name);
	}
	return r;
}

static int watch_begin_irq(struct watch *w, const struct trace_event *ev, enum watch_kind kind,
			   uint64_t number)
{
	struct cpu_interval *i = per_cpu_get(&w->open, ev->cpu, irq_events_key(kind, number));

	if (!i)
		return -ENOMEM;
	per_cpu_begin(&w->open, i, ev->cpu, ev->rec.ts);
	return 0;
}

static int watch_end_irq(struct watch *w, const struct trace_event *ev, enum watch_kind kind,
			 uint64_t number, struct text name)
{
	struct cpu_interval *interval =
		per_cpu_get(&w->open, ev->cpu, irq_events_key(kind, number));
	uint64_t ns;
	int r = 0;

	if (!interval)
		return -ENOMEM;
	if (per_cpu_end(&w->open, interval, ev->cpu, ev->rec.ts, &ns) != INTERVAL_WHOLE)
		return 0;
	for (size_t i = 0; i < w->count && r == 0; i++) {
		const struct watch_condition *c = &w->all[i].condition;

		if (c->kind == kind && ns > c->above &&
		    (c->cpu < 0 || (uint32_t)c->cpu == ev->cpu) && watch_matches(c->name, name))
			r = watch_fire(w, i, ev->rec.ts, ns, (int32_t)ev->cpu, ev->pid, name);
	}
	return r;
}

/* The exit does not name the interrupt. */
static int watch_on_irq(struct report *report, const struct trace_event *ev)
{
	struct watch *w = container_of(report, struct watch, report);
	uint64_t number = field_at_read(&w->irq.number, &ev->rec);
	struct text name = string_at_read(&w->irq.name, &ev->rec);
	struct watch_irq *irq = rows_get(&w->irqs, (struct row_key){ number, 0 });

	if (!irq)
		return -ENOMEM;
	snprintf(irq->name, sizeof(irq->name), "%.*s", (int)MIN(name.len, 256U), name.data ?: "");
	return watch_begin_irq(w, ev, WATCH_IRQ, number);
}

static int watch_on_irq_exit(struct report *report, const struct trace_event *ev)
{
	struct watch *w = container_of(report, struct watch, report);
	uint64_t number = field_at_read(&w->irq.exit_number, &ev->rec);
	const struct watch_irq *irq = rows_find(&w->irqs, (struct row_key){ number, 0 });
	const char *name = irq ? irq->name : "?";

	return watch_end_irq(w, ev, WATCH_IRQ, number,
			     (struct text){ name, (uint32_t)strlen(name) });
}

static int watch_on_softirq(struct report *report, const struct trace_event *ev)
{
	struct watch *w = container_of(report, struct watch, report);

	return watch_begin_irq(w, ev, WATCH_SOFTIRQ, field_at_read(&w->softirq.number, &ev->rec));
}

static int watch_on_softirq_exit(struct report *report, const struct trace_event *ev)
{
	struct watch *w = container_of(report, struct watch, report);
	uint64_t vec = field_at_read(&w->softirq.exit_number, &ev->rec);

	return watch_end_irq(w, ev, WATCH_SOFTIRQ, vec, softirq_name(vec));
}

/* The kernel has filtered it. */
static int watch_on_event(struct report *report, const struct trace_event *ev)
{
	struct watch *w = container_of(report, struct watch, report);
	int r = 0;

	for (size_t i = 0; i < w->count && r == 0; i++) {
		if (!w->all[i].event || w->all[i].event->id != ev->id)
			continue;
		buf_clear(&w->text);
		r = sink_print(report->env->printer, ev, &w->text);
		if (r < 0 || buf_error(&w->text))
			return -ENOMEM;
		r = watch_fire(w, i, ev->rec.ts, 0, (int32_t)ev->cpu, ev->pid,
			       (struct text){ w->text.data, (uint32_t)w->text.len });
	}
	return r;
}

/* A slice of a condition's name has ended. */
static int watch_on_slice(void *userdata, size_t i, int32_t tid, uint64_t from, uint64_t to)
{
	struct watch *w = userdata;
	const struct watch_condition *c = &w->all[i].condition;
	uint64_t ns = report_elapsed(from, to);
	struct text name = { c->name, (uint32_t)strlen(c->name) };

	if (ns <= c->above || (c->tid && c->tid != tid))
		return 0;
	if (c->comm &&
	    !watch_matches(c->comm, report_task_name(report_task(w->report.env, tid, to), tid)))
		return 0;
	return watch_fire(w, i, to, ns, -1, tid, name);
}

static int watch_on_print(struct report *report, const struct trace_event *ev)
{
	struct watch *w = container_of(report, struct watch, report);
	struct text text;

	if (ev->rec.len <= w->text_at)
		return 0;
	text.data = (const char *)ev->rec.data + w->text_at;
	text.len = (uint32_t)strnlen(text.data, ev->rec.len - w->text_at);
	return watch_slices_text(&w->slices, ev->pid, ev->rec.ts, text);
}

static int watch_mark(struct report *report, const struct mark *mark)
{
	return watch_slices_mark(&container_of(report, struct watch, report)->slices, mark);
}

static int watch_loss(struct report *report, uint32_t cpu)
{
	return per_cpu_loss(&container_of(report, struct watch, report)->open, cpu);
}

static bool watch_ask_marks(struct watch *w, struct report_env *env, size_t i)
{
	const struct event *print = NULL;
	const struct field *text;

	watch_slices_want(&w->slices, i, w->all[i].condition.name);
	report_on(env, &w->report, "ftrace", "print", watch_on_print, &print);
	text = event_field(print, "buf");
	w->text_at = text ? text->offset : UINT32_MAX;
	return true;
}

/* Asks for the events of a condition. Returns 0, -ENODATA: there are none; or another -errno. */
static int watch_ask(struct watch *w, struct report_env *env, size_t i)
{
	const struct watch_condition *c = &w->all[i].condition;
	int r = 0;

	switch (c->kind) {
	case WATCH_DELAY:
		if (!w->has_delay)
			r = scheduler_listen(env->scheduler, &(struct sched_listener){
								     .report = &w->report,
								     .waited = watch_on_waited,
							     });
		w->has_delay = true;
		return MIN(r, 0);
	case WATCH_IRQ:
		irq_events_ask(&w->irq, &w->report, "irq_handler", "irq", watch_on_irq,
			       watch_on_irq_exit);
		return w->irq.has_entry && w->irq.has_exit ? 0 : -ENODATA;
	case WATCH_SOFTIRQ:
		irq_events_ask(&w->softirq, &w->report, "softirq", "vec", watch_on_softirq,
			       watch_on_softirq_exit);
		return w->softirq.has_entry && w->softirq.has_exit ? 0 : -ENODATA;
	case WATCH_MARK:
		return watch_ask_marks(w, env, i) ? 0 : -ENODATA;
	case WATCH_EVENT:
		return report_on(env, &w->report, c->system, c->event, watch_on_event,
				 &w->all[i].event)
			       ? 0
			       : -ENODATA;
	case WATCH_LOST:
		/* Whoever follows the recording asks the daemon. */
		return 0;
	}
	return -EINVAL;
}

static int watch_open(struct report **ret, struct report_env *env)
{
	struct watch *w = calloc(1, sizeof(*w));
	int r = 0;

	if (!w)
		return -ENOMEM;
	*ret = &w->report;
	w->report.env = env;
	per_cpu_init(&w->open);
	rows_init(&w->irqs, sizeof(struct watch_irq), NULL);
	watch_slices_init(&w->slices, env, watch_on_slice, w);
	for (size_t i = 0; i < env->watch->count && r == 0; i++) {
		r = watch_condition_parse(env->watch->conditions[i], &w->all[i].condition, NULL);
		w->count += r == 0;
		if (r == 0)
			r = watch_ask(w, env, i);
	}
	return r;
}

static void watch_free(struct report *report)
{
	struct watch *w = container_of(report, struct watch, report);

	for (size_t i = 0; i < w->count; i++)
		watch_condition_deinit(&w->all[i].condition);
	per_cpu_deinit(&w->open);
	rows_deinit(&w->irqs);
	watch_slices_deinit(&w->slices);
	buf_deinit(&w->text);
	free(w);
}

/* No table; the sink's close() ends it. */
static const struct report_kind watch_kind = {
	.about = { .name = "watch", .events = "sched" },
	.open = watch_open,
	.loss = watch_loss,
	.mark = watch_mark,
	.free = watch_free,
};

static int watch_check(const struct export_watch *watch, struct error *err)
{
	if (!watch || !watch->count)
		return error_set(err, -EINVAL, "no condition is given");
	if (watch->count > WATCH_CONDITIONS_MAX)
		return error_set(err, -EINVAL, "more than %d conditions", WATCH_CONDITIONS_MAX);
	for (size_t i = 0; i < watch->count; i++) {
		struct watch_condition c;
		int r = watch_condition_parse(watch->conditions[i], &c, err);

		if (r < 0)
			return r;
		watch_condition_deinit(&c);
	}
	return 0;
}

static int watch_sink_open(struct sink **ret, const struct sink_env *env, struct error *err)
{
	int r = watch_check(env->options->watch, err);
	struct sink_report *s;

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_errno(err, -ENOMEM, "can't begin to watch");
	*ret = &s->sink;
	r = report_sink_init(s, env, err);
	return r < 0 ? r : report_sink_add(s, &watch_kind, err);
}

/* Says what was only counted, and begins to count anew. */
static int watch_end_burst(struct watch *w)
{
	int r = 0;

	for (size_t i = 0; i < w->count && r == 0; i++) {
		struct watched *c = &w->all[i];
		Traced__Control__Firing firing = TRACED__CONTROL__FIRING__INIT;

		if (c->more) {
			firing.condition = (uint32_t)i;
			firing.at_ns = c->last_ts;
			firing.more = c->more;
			firing.cpu = -1;
			r = watch_put(w, &firing);
		}
		c->more = 0;
		c->fired = 0;
	}
	return r;
}

/* Memory stays bounded however long the recording is. */
static int watch_forget(struct watch *w)
{
	const struct report_env *env = w->report.env;
	int r;

	watch_slices_forget(&w->slices);
	/* First, because it looks at the tasks that are freed then. */
	r = scheduler_forget_ended(env->scheduler);
	if (r == 0)
		task_table_forget(env->info->tasks, env->ts);
	return r;
}

static struct watch *to_watch(struct sink *sink)
{
	struct sink_report *s = container_of(sink, struct sink_report, sink);

	return container_of(s->reports[0], struct watch, report);
}

static int watch_sink_sync(struct sink *sink, struct error *err)
{
	struct watch *w = to_watch(sink);
	int r = watch_end_burst(w);

	if (r == 0)
		r = watch_forget(w);
	return r < 0 ? error_errno(err, r, "can't go on watching") : 0;
}

static int watch_sink_close(struct sink *sink, const struct export_result *result _unused_,
			    struct error *err)
{
	struct watch *w = to_watch(sink);
	int r = watch_end_burst(w);

	if (r == 0)
		r = output_flush(w->report.env->out, true);
	return r < 0 ? error_errno(err, r, "can't write what fired") : 0;
}

const struct sink_ops watch_sink_ops = {
	.format = {
		.name = "watch",
		.extension = ".watch",
		.summary = "conditions that were met",
		.clocks = report_clocks,
		.only_live = true,
	},
	.open = watch_sink_open,
	.event = report_sink_event,
	.loss = report_sink_loss,
	.mark = report_sink_mark,
	.sync = watch_sink_sync,
	.close = watch_sink_close,
	.free = report_sink_free,
};
