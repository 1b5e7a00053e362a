/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report `power`: idle states and frequencies of each CPU, and what woke it up. */
#include <errno.h>
#include <stdlib.h>

#include "report/wakers.h"

/* PWR_EVENT_EXIT of cpu_idle: the CPU runs again. */
#define IDLE_EXIT UINT32_MAX

enum power_what { POWER_IDLE, POWER_FREQUENCY, POWER_WHATS };

struct power_row {
	uint32_t cpu, state;
	enum power_what what;
	bool is_rest;
	struct histogram time;
	uint64_t max_at, cut, open;
};

/* The present state of a CPU. */
struct power_now {
	struct power_row *row; /* NULL: unknown, or it runs */
	uint64_t from, mark;
};

struct power_cpu {
	struct power_now now[POWER_WHATS];
};

struct power_report {
	struct report report;
	struct rows rows; /* of struct power_row, by CPU, kind and state */
	struct rows cpus; /* of struct power_cpu */
	struct wakers wakers;
	bool has_wakers;
	struct field_at idle_state, idle_cpu, frequency, frequency_cpu;
};

static struct power_row *power_row(struct power_report *p, enum power_what what, uint32_t cpu,
				   uint32_t state)
{
	struct power_row *row =
		rows_get(&p->rows, (struct row_key){ cpu, (uint64_t)what << 32 | state });

	if (row && row == p->rows.rest)
		row->is_rest = true;
	else if (row) {
		row->cpu = cpu;
		row->what = what;
		row->state = state;
	}
	return row;
}

static struct power_cpu *power_cpu(struct power_report *p, uint32_t cpu)
{
	return rows_get(&p->cpus, (struct row_key){ cpu, 0 });
}

/* The state ends. Idle times are bound to the CPU: power_loss() cuts them. */
static int power_end(struct power_report *p, struct power_now *now, bool whole)
{
	const struct report_env *env = p->report.env;
	struct power_row *row = now->row;
	uint64_t ns = report_elapsed(now->from, env->ts);

	now->row = NULL;
	if (!row)
		return 0;
	if (!whole) {
		row->cut++;
		return 0;
	}
	return histogram_add_at(&row->time, ns, env->ts, &row->max_at);
}

static int power_begin(struct power_report *p, struct power_now *now, enum power_what what,
		       uint32_t cpu, uint32_t state)
{
	now->row = power_row(p, what, cpu, state);
	now->from = p->report.env->ts;
	now->mark = report_mark(p->report.env);
	return now->row ? 0 : -ENOMEM;
}

static int power_on_awake(struct power_report *p, uint32_t cpu, struct power_now *now)
{
	const bool was_seen = now->row;
	int r = power_end(p, now, true);

	return r < 0 || !was_seen || !p->has_wakers
		       ? r
		       : wakers_on_awake(&p->wakers, cpu,
					 report_elapsed(now->from, p->report.env->ts));
}

static int power_on_idle(struct report *report, const struct trace_event *ev)
{
	struct power_report *p = container_of(report, struct power_report, report);
	uint32_t number = (uint32_t)field_at_read(&p->idle_cpu, &ev->rec);
	uint32_t state = (uint32_t)field_at_read(&p->idle_state, &ev->rec);
	struct power_cpu *cpu = power_cpu(p, number);
	struct power_now *now;
	int r = 0;

	if (!cpu)
		return -ENOMEM;
	now = &cpu->now[POWER_IDLE];
	if (state == IDLE_EXIT)
		return power_on_awake(p, number, now);
	/* Two entries without an exit: nobody knows how long the first state lasted. */
	if (now->row)
		now->row->open++;
	if (p->has_wakers)
		r = wakers_on_idle(&p->wakers, number);
	return r < 0 ? r : power_begin(p, now, POWER_IDLE, number, state);
}

/* The events of a CPU's frequency may come from any CPU. */
static int power_on_frequency(struct report *report, const struct trace_event *ev)
{
	struct power_report *p = container_of(report, struct power_report, report);
	uint32_t number = (uint32_t)field_at_read(&p->frequency_cpu, &ev->rec);
	struct power_cpu *cpu = power_cpu(p, number);
	struct power_now *now;
	int r;

	if (!cpu)
		return -ENOMEM;
	now = &cpu->now[POWER_FREQUENCY];
	r = power_end(p, now, report_is_whole(report->env, now->mark));
	return r < 0 ? r
		     : power_begin(p, now, POWER_FREQUENCY, number,
				   (uint32_t)field_at_read(&p->frequency, &ev->rec));
}

static int power_on_interrupt(struct report *report, const struct trace_event *ev)
{
	struct power_report *p = container_of(report, struct power_report, report);

	return wakers_on_event(&p->wakers, ev);
}

static int power_loss(struct report *report, uint32_t number)
{
	struct power_report *p = container_of(report, struct power_report, report);
	struct power_cpu *cpu = power_cpu(p, number);
	int r = cpu ? power_end(p, &cpu->now[POWER_IDLE], false) : -ENOMEM;

	return r < 0 || !p->has_wakers ? r : wakers_on_loss(&p->wakers, number);
}

static void power_row_deinit(void *data)
{
	struct power_row *row = data;

	histogram_deinit(&row->time);
}

static int power_open(struct report **ret, struct report_env *env)
{
	struct power_report *p = calloc(1, sizeof(*p));
	const struct event *idle = NULL, *frequency = NULL;

	if (!p)
		return -ENOMEM;
	*ret = &p->report;
	p->report.env = env;
	rows_init(&p->rows, sizeof(struct power_row), power_row_deinit);
	rows_init(&p->cpus, sizeof(struct power_cpu), NULL);
	report_on(env, &p->report, "power", "cpu_idle", power_on_idle, &idle);
	report_on(env, &p->report, "power", "cpu_frequency", power_on_frequency, &frequency);
	p->idle_state = field_at_find(idle, "state", env->big_endian);
	p->idle_cpu = field_at_find(idle, "cpu_id", env->big_endian);
	p->frequency = field_at_find(frequency, "state", env->big_endian);
	p->frequency_cpu = field_at_find(frequency, "cpu_id", env->big_endian);
	p->has_wakers = idle && wakers_init(&p->wakers, &p->report, power_on_interrupt);
	return idle || frequency ? 0 : -ENODATA;
}

static void power_end_all(struct power_report *p)
{
	const struct report_env *env = p->report.env;

	for (uint32_t i = 0; i < p->cpus.count; i++) {
		const struct power_cpu *cpu = rows_at(&p->cpus, i);
		const struct power_now *frequency = &cpu->now[POWER_FREQUENCY];

		if (cpu->now[POWER_IDLE].row)
			cpu->now[POWER_IDLE].row->open++;
		if (frequency->row && report_is_whole(env, frequency->mark))
			frequency->row->open++;
		else if (frequency->row)
			frequency->row->cut++;
	}
}

static const struct column power_columns[] = {
	COLUMN("cpu", COLUMN_NUMBER),
	COLUMN("what", COLUMN_TEXT),
	COLUMN("state", COLUMN_NUMBER),
	COLUMN("source", COLUMN_TEXT),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("total", COLUMN_TIME),
	COLUMN("share", COLUMN_PERMILLE, .adds = ADDS_SPAN_SHARE, .of = "total"),
	COLUMN("time", COLUMN_HISTOGRAM),
	COLUMN("max-at", COLUMN_AT, .adds = ADDS_AT, .of = "time"),
	COLUMN("cut", COLUMN_COUNT),
	COLUMN("open", COLUMN_COUNT),
};

static void power_put_times(struct table *t, const struct histogram *time, uint64_t max_at,
			    uint64_t cut, uint64_t open)
{
	table_put_count(t, time->count);
	table_put_count(t, time->sum);
	table_put_count(t, TABLE_DERIVED);
	table_put_histogram(t, time);
	table_put_count(t, max_at);
	table_put_count(t, cut);
	table_put_count(t, open);
}

static void power_put_row(struct table *t, const struct power_row *row)
{
	table_put_number(t, row->is_rest ? -1 : (int64_t)row->cpu);
	table_put_text(t, row->is_rest		    ? TEXT("(others)")
			  : row->what == POWER_IDLE ? TEXT("idle")
						    : TEXT("frequency"));
	table_put_number(t, row->is_rest ? -1 : (int64_t)row->state);
	table_put_text(t, TEXT(""));
	power_put_times(t, &row->time, row->max_at, row->cut, row->open);
}

static void power_put_waker(struct table *t, const struct waker_row *row)
{
	table_put_number(t, row->is_rest ? -1 : (int64_t)row->cpu);
	table_put_text(t, TEXT("wake-up"));
	table_put_number(t, -1);
	table_put_text(t,
		       row->is_rest ? TEXT("(others)") : (struct text){ row->name, row->name_len });
	power_put_times(t, &row->time, row->max_at, row->cut, row->open);
}

static int power_close(struct report *report, struct table **ret)
{
	struct power_report *p = container_of(report, struct power_report, report);
	struct table *t;
	int r = table_new(&t, "power", power_columns, ARRAY_SIZE(power_columns), "total");

	if (r < 0)
		return r;
	*ret = t;
	power_end_all(p);
	r = p->has_wakers ? wakers_end(&p->wakers) : 0;
	for (uint32_t i = 0; i < rows_all(&p->rows); i++)
		power_put_row(t, rows_each(&p->rows, i));
	for (uint32_t i = 0; i < rows_all(&p->wakers.rows); i++)
		power_put_waker(t, rows_each(&p->wakers.rows, i));
	if (p->has_wakers && !p->wakers.sched_switch)
		table_note(t, "no switches were recorded: a source may be a later interrupt");
	return r;
}

static void power_free(struct report *report)
{
	struct power_report *p = container_of(report, struct power_report, report);

	rows_deinit(&p->rows);
	rows_deinit(&p->cpus);
	wakers_deinit(&p->wakers);
	free(p);
}

const struct report_kind report_power = {
	.about = {
		.name = "power",
		.summary = "idle states and frequencies of each CPU, and what woke it up",
		.events = "power -e irq -e irq_vectors -e sched:sched_switch",
	},
	.open = power_open,
	.loss = power_loss,
	.close = power_close,
	.free = power_free,
};
