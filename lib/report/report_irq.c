/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report `irq`: how long the handlers of interrupts and softirqs ran, and softirqs waited. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/secret_hash.h"
#include "report/irq_events.h"
#include "report/per_cpu.h"
#include "report/scheduler.h"
#include "report/softirq.h"

#define NAME_MAX_BYTES 48

enum irq_kind { IRQ_HANDLER, IRQ_SOFT, IRQ_VECTOR, IRQ_THREAD };

static const char *const irq_kind_names[] = { "irq", "softirq", "vector", "thread" };

struct irq_row {
	char name[NAME_MAX_BYTES];
	uint8_t name_len, kind;
	bool used, is_rest;
	uint32_t cpu;
	int64_t number;
	struct histogram time, raise;
	uint64_t max_at, cut, open;
};

/* A softirq's raises on one CPU. */
struct irq_raises {
	uint64_t first;	      /* since it ran last; 0: none */
	uint64_t losses_then; /* losses of the CPU when it ran last, plus 1; 0: it has not run */
};

struct irq_report {
	struct report report;
	struct rows rows;
	struct rows raises; /* of struct irq_raises, by vector and CPU */
	struct per_cpu open;
	struct irq_events irq, softirq;
	struct field_at vec_raise;
	struct irq_vectors vectors;
	bool by_cpu;
};

static const char *const irq_by[] = { "irq", "cpu", NULL };

static struct irq_row *irq_row_get(struct irq_report *s, uint32_t cpu, enum irq_kind kind,
				   int64_t number, struct text name)
{
	const uint64_t which = (uint64_t)(s->by_cpu ? cpu + 1 : 0) << 3 | kind;
	struct row_key key = { (uint64_t)number << 32 ^ which,
			       XXH3_64bits_withSeed(name.data, name.len, hash_secret[0]) };
	struct irq_row *row = rows_get(&s->rows, key);

	if (!row || row->used)
		return row;
	row->used = true;
	row->is_rest = row == s->rows.rest;
	row->kind = (uint8_t)kind;
	row->number = number;
	row->cpu = cpu;
	row->name_len = (uint8_t)MIN(name.len, (uint32_t)NAME_MAX_BYTES);
	memcpy(row->name, name.data, row->name_len);
	return row;
}

static int irq_begin(struct irq_report *s, const struct trace_event *ev, enum irq_kind kind,
		     int64_t number, struct text name)
{
	struct cpu_interval *i =
		per_cpu_get(&s->open, ev->cpu, irq_events_key(kind, (uint64_t)number));
	struct irq_row *before = i ? i->row : NULL;

	if (!i)
		return -ENOMEM;
	i->row = irq_row_get(s, ev->cpu, kind, number, name);
	if (per_cpu_begin(&s->open, i, ev->cpu, ev->rec.ts) && before)
		before->cut++;
	return i->row ? 0 : -ENOMEM;
}

static int irq_end(struct irq_report *s, const struct trace_event *ev, enum irq_kind kind,
		   int64_t number, struct text name)
{
	struct cpu_interval *i =
		per_cpu_get(&s->open, ev->cpu, irq_events_key(kind, (uint64_t)number));
	struct irq_row *row;
	uint64_t ns;

	if (!i)
		return -ENOMEM;
	/* Without its begin, a handler's name is not known. */
	row = i->row ?: irq_row_get(s, ev->cpu, kind, number, name);
	if (!row)
		return -ENOMEM;
	switch (per_cpu_end(&s->open, i, ev->cpu, ev->rec.ts, &ns)) {
	case INTERVAL_CUT:
		row->cut++;
		return 0;
	case INTERVAL_NO_BEGIN:
		row->open++;
		return 0;
	case INTERVAL_WHOLE:
		break;
	}
	return histogram_add_at(&row->time, ns, ev->rec.ts, &row->max_at);
}

static int irq_on_entry(struct report *report, const struct trace_event *ev)
{
	struct irq_report *s = container_of(report, struct irq_report, report);

	return irq_begin(s, ev, IRQ_HANDLER, (int64_t)field_at_read(&s->irq.number, &ev->rec),
			 string_at_read(&s->irq.name, &ev->rec));
}

static int irq_on_exit(struct report *report, const struct trace_event *ev)
{
	struct irq_report *s = container_of(report, struct irq_report, report);

	return irq_end(s, ev, IRQ_HANDLER, (int64_t)field_at_read(&s->irq.exit_number, &ev->rec),
		       (struct text){ "", 0 });
}

/* NULL: out of memory. */
static struct irq_raises *irq_raises_get(struct irq_report *s, uint32_t cpu, uint64_t vec)
{
	return rows_get(&s->raises, (struct row_key){ vec, cpu });
}

/* Every raise since the softirq ran last was seen. */
static bool irq_raises_are_whole(const struct irq_report *s, const struct irq_raises *raises,
				 uint32_t cpu)
{
	return raises->losses_then == per_cpu_losses(&s->open, cpu) + 1 && raises != s->raises.rest;
}

static int irq_on_raise(struct report *report, const struct trace_event *ev)
{
	struct irq_report *s = container_of(report, struct irq_report, report);
	uint64_t vec = field_at_read(&s->vec_raise, &ev->rec);
	struct irq_raises *raises = irq_raises_get(s, ev->cpu, vec);

	if (!raises)
		return -ENOMEM;
	/* Raised again before it runs, it waits since the first time. */
	if (!raises->first && irq_raises_are_whole(s, raises, ev->cpu))
		raises->first = ev->rec.ts;
	return 0;
}

static int irq_end_raise(struct irq_report *s, const struct trace_event *ev, uint64_t vec,
			 struct irq_row *row)
{
	struct irq_raises *raises = irq_raises_get(s, ev->cpu, vec);
	int r = 0;

	if (!raises)
		return -ENOMEM;
	if (raises->first && irq_raises_are_whole(s, raises, ev->cpu))
		r = histogram_add(&row->raise, report_elapsed(raises->first, ev->rec.ts));
	*raises = (struct irq_raises){ .losses_then = per_cpu_losses(&s->open, ev->cpu) + 1 };
	return r;
}

static int irq_on_softirq(struct report *report, const struct trace_event *ev)
{
	struct irq_report *s = container_of(report, struct irq_report, report);
	uint64_t vec = field_at_read(&s->softirq.number, &ev->rec);
	int r = irq_begin(s, ev, IRQ_SOFT, (int64_t)vec, softirq_name(vec));
	struct cpu_interval *i = per_cpu_get(&s->open, ev->cpu, irq_events_key(IRQ_SOFT, vec));

	return r < 0 || !i ? MIN(r, 0) : irq_end_raise(s, ev, vec, i->row);
}

static int irq_on_softirq_exit(struct report *report, const struct trace_event *ev)
{
	struct irq_report *s = container_of(report, struct irq_report, report);
	uint64_t vec = field_at_read(&s->softirq.exit_number, &ev->rec);

	return irq_end(s, ev, IRQ_SOFT, (int64_t)vec, softirq_name(vec));
}

static int irq_on_vector(struct report *report, const struct trace_event *ev)
{
	struct irq_report *s = container_of(report, struct irq_report, report);
	const struct irq_vector *v = irq_vectors_find(&s->vectors, ev->id);

	if (!v)
		return 0;
	return ev->id == v->entry ? irq_begin(s, ev, IRQ_VECTOR, v->entry, v->name)
				  : irq_end(s, ev, IRQ_VECTOR, v->entry, v->name);
}

/* The row of an interrupt's thread; *ret NULL: the task is none. */
static int irq_thread_row(struct irq_report *s, const struct sched_span *span, struct irq_row **ret)
{
	static const struct text prefix = TEXT("irq/");
	struct text name = report_task_name(span->task->known, span->task->tid);

	*ret = NULL;
	if (name.len < prefix.len || memcmp(name.data, prefix.data, prefix.len) != 0)
		return 0;
	*ret = irq_row_get(s, span->cpu, IRQ_THREAD, 0, name);
	if (!*ret)
		return -ENOMEM;
	(*ret)->cut += span->state == SPAN_CUT;
	(*ret)->open += span->state == SPAN_OPEN;
	return 0;
}

static int irq_on_thread_ran(struct report *report, const struct sched_span *span,
			     const struct sched_task *next _unused_)
{
	struct irq_report *s = container_of(report, struct irq_report, report);
	struct irq_row *row;
	int r = irq_thread_row(s, span, &row);

	if (r < 0 || !row || span->state != SPAN_WHOLE)
		return r;
	return histogram_add_at(&row->time, span->to - span->from, span->to, &row->max_at);
}

static int irq_on_thread_waited(struct report *report, const struct sched_span *span)
{
	struct irq_report *s = container_of(report, struct irq_report, report);
	struct irq_row *row;
	int r = irq_thread_row(s, span, &row);

	/* A preempted thread was not raised. */
	if (r < 0 || !row || span->state != SPAN_WHOLE || span->task->preempted)
		return r;
	return histogram_add(&row->raise, span->to - span->from);
}

static bool irq_find_events(struct irq_report *s, struct report_env *env)
{
	const struct event *ev;

	irq_events_ask(&s->irq, &s->report, "irq_handler", "irq", irq_on_entry, irq_on_exit);
	irq_events_ask(&s->softirq, &s->report, "softirq", "vec", irq_on_softirq,
		       irq_on_softirq_exit);
	if (report_on(env, &s->report, "irq", "softirq_raise", irq_on_raise, &ev))
		s->vec_raise = field_at_find(ev, "vec", env->big_endian);
	return irq_vectors_ask(&s->vectors, &s->report, irq_on_vector, irq_on_vector) ||
	       s->irq.has_entry || s->softirq.has_entry;
}

static void irq_row_deinit(void *data)
{
	struct irq_row *row = data;

	histogram_deinit(&row->time);
	histogram_deinit(&row->raise);
}

static void irq_row_reset(struct irq_row *row)
{
	irq_row_deinit(row);
	row->max_at = row->cut = row->open = 0;
}

static int irq_open(struct report **ret, struct report_env *env)
{
	struct irq_report *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->report.env = env;
	s->by_cpu = env->by && !strcmp(env->by, "cpu");
	rows_init(&s->rows, sizeof(struct irq_row), irq_row_deinit);
	rows_init(&s->raises, sizeof(struct irq_raises), NULL);
	per_cpu_init(&s->open);
	*ret = &s->report;
	if (!irq_find_events(s, env))
		return -ENODATA;
	r = scheduler_listen(env->scheduler, &(struct sched_listener){
						     .report = &s->report,
						     .ran = irq_on_thread_ran,
						     .waited = irq_on_thread_waited,
					     });
	/* Without sched_switch, nothing is known of threads. */
	return r == -ENODATA ? 0 : MIN(r, 0);
}

static int irq_loss(struct report *report, uint32_t cpu)
{
	struct irq_report *s = container_of(report, struct irq_report, report);

	return per_cpu_loss(&s->open, cpu);
}

/* Handlers that have not ended: the recording ends in them, or their end is lost. */
static void irq_count_open(struct irq_report *s)
{
	for (uint32_t n = 0; n < s->open.intervals.count; n++) {
		struct cpu_interval *i = rows_at(&s->open.intervals, n);
		struct irq_row *row = i->row;

		if (i->since && row)
			row->open++;
	}
}

static const struct column irq_columns[] = {
	COLUMN("cpu", COLUMN_NUMBER),
	COLUMN("name", COLUMN_TEXT),
	COLUMN("kind", COLUMN_TEXT),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("total", COLUMN_TIME),
	COLUMN("time", COLUMN_HISTOGRAM),
	COLUMN("max-at", COLUMN_AT, .adds = ADDS_AT, .of = "time"),
	COLUMN("raise", COLUMN_HISTOGRAM),
	COLUMN("cut", COLUMN_COUNT),
	COLUMN("open", COLUMN_COUNT),
};

static void irq_put_name(struct table *t, const struct irq_row *row)
{
	char name[NAME_MAX_BYTES + 24];
	int len;

	if (row->is_rest) {
		table_put_text(t, TEXT("(others)"));
		table_put_text(t, TEXT(""));
		return;
	}
	len = row->kind == IRQ_HANDLER
		      ? snprintf(name, sizeof(name), "%lld %.*s", (long long)row->number,
				 row->name_len, row->name)
		      : snprintf(name, sizeof(name), "%.*s", row->name_len, row->name);
	table_put_text(t, (struct text){ name, (uint32_t)len });
	table_put_text(t, (struct text){ irq_kind_names[row->kind],
					 (uint32_t)strlen(irq_kind_names[row->kind]) });
}

static void irq_put_row(const struct irq_report *s, struct table *t, const struct irq_row *row)
{
	if (s->by_cpu)
		table_put_number(t, row->is_rest ? -1 : (int64_t)row->cpu);
	irq_put_name(t, row);
	table_put_count(t, row->time.count);
	table_put_count(t, row->time.sum);
	table_put_histogram(t, &row->time);
	table_put_count(t, row->max_at);
	table_put_histogram(t, &row->raise);
	table_put_count(t, row->cut);
	table_put_count(t, row->open);
}

/* Something of it happened in this window. */
static bool irq_row_is_used(const struct irq_row *row)
{
	return row->time.count || row->raise.count || row->cut || row->open;
}

static int irq_close(struct report *report, struct table **ret)
{
	struct irq_report *s = container_of(report, struct irq_report, report);
	const size_t skip = s->by_cpu ? 0 : 1;
	int r = table_new(ret, "irq", irq_columns + skip, ARRAY_SIZE(irq_columns) - skip, "total");

	if (r < 0)
		return r;
	if (!report->env->goes_on)
		irq_count_open(s);
	for (uint32_t i = 0; i < s->rows.count; i++)
		if (!report->env->goes_on || irq_row_is_used(rows_at(&s->rows, i)))
			irq_put_row(s, *ret, rows_at(&s->rows, i));
	if (s->rows.rest)
		irq_put_row(s, *ret, s->rows.rest);
	return 0;
}

/* Rows stay, for handlers that run: they have their names. */
static int irq_renew(struct report *report)
{
	struct irq_report *s = container_of(report, struct irq_report, report);

	for (uint32_t i = 0; i < rows_all(&s->rows); i++)
		irq_row_reset(rows_each(&s->rows, i));
	return 0;
}

static void irq_free(struct report *report)
{
	struct irq_report *s = container_of(report, struct irq_report, report);

	rows_deinit(&s->rows);
	rows_deinit(&s->raises);
	per_cpu_deinit(&s->open);
	free(s);
}

const struct report_kind report_irq = {
	.about = {
		.name = "irq",
		.summary = "how long interrupts and softirqs took",
		.is_usual = true,
		.page_sort = "time-max",
		.events = "irq",
		.by = irq_by,
	},
	.open = irq_open,
	.loss = irq_loss,
	.close = irq_close,
	.renew = irq_renew,
	.free = irq_free,
};
