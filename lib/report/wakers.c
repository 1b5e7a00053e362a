/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/wakers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A CPU, from the begin of an idle time until its waker is known. */
struct waker_cpu {
	bool is_sought;
	bool is_awake; /* the idle time took `ns`, until `at` */
	uint64_t ns, at;
	struct waker_row *row; /* of the first interrupt; NULL: none yet */
};

static void waker_row_deinit(void *row)
{
	histogram_deinit(&((struct waker_row *)row)->time);
}

static uint16_t wakers_ask(struct report *r, const char *system, const char *name,
			   report_handler handler, const struct event **ret)
{
	return report_on(r->env, r, system, name, handler, ret) ? (*ret)->id : 0;
}

bool wakers_init(struct wakers *w, struct report *r, report_handler on_event)
{
	const struct event *ev = NULL;

	w->env = r->env;
	rows_init(&w->rows, sizeof(struct waker_row), waker_row_deinit);
	rows_init(&w->cpus, sizeof(struct waker_cpu), NULL);
	w->sched_switch = wakers_ask(r, "sched", "sched_switch", on_event, &ev);
	/* Arm's interrupts between CPUs. */
	w->ipi = wakers_ask(r, "ipi", "ipi_entry", on_event, &ev);
	ev = NULL;
	w->handler = wakers_ask(r, "irq", "irq_handler_entry", on_event, &ev);
	w->irq = field_at_find(ev, "irq", r->env->big_endian);
	w->name = string_at_find(ev, "name", r->env->big_endian);
	return irq_vectors_ask(&w->vectors, r, on_event, on_event) || w->handler || w->ipi;
}

void wakers_deinit(struct wakers *w)
{
	rows_deinit(&w->rows);
	rows_deinit(&w->cpus);
}

static struct waker_row *waker_row(struct wakers *w, uint32_t cpu, struct text name)
{
	struct row_key key = row_key_join((struct row_key){ cpu, 0 }, row_key_of_text(name));
	struct waker_row *row = rows_get(&w->rows, key);

	if (!row || row->used)
		return row;
	row->used = true;
	row->is_rest = row == w->rows.rest;
	row->cpu = cpu;
	row->name_len = (uint8_t)MIN(name.len, WAKER_NAME_MAX);
	memcpy(row->name, name.data, row->name_len);
	return row;
}

static struct waker_cpu *waker_cpu(struct wakers *w, uint32_t cpu)
{
	return rows_get(&w->cpus, (struct row_key){ cpu, 0 });
}

/* The waker's row. *ret NULL: the event is no begin of an interrupt. */
static int wakers_source(struct wakers *w, const struct trace_event *ev, struct waker_row **ret)
{
	const struct irq_vector *v = irq_vectors_find(&w->vectors, ev->id);
	struct text name = v ? v->name : TEXT("ipi");
	char text[WAKER_NAME_MAX + 24];

	*ret = NULL;
	if (ev->id == w->handler) {
		const struct text handler = string_at_read(&w->name, &ev->rec);

		name.data = text;
		name.len = (uint32_t)snprintf(text, sizeof(text), "%lld %.*s",
					      (long long)field_at_read(&w->irq, &ev->rec),
					      (int)MIN(handler.len, WAKER_NAME_MAX), handler.data);
	} else if (v ? ev->id != v->entry : ev->id != w->ipi) {
		return 0;
	}
	*ret = waker_row(w, ev->cpu, name);
	return *ret ? 0 : -ENOMEM;
}

/* The waker is known, or there is none. */
static int waker_settle(struct wakers *w, struct waker_cpu *cpu, uint32_t number)
{
	struct waker_row *row = cpu->row ?: waker_row(w, number, TEXT("(unknown)"));

	cpu->is_sought = false;
	return row ? histogram_add_at(&row->time, cpu->ns, cpu->at, &row->max_at) : -ENOMEM;
}

/* The waker of a whole idle time stays unknown. */
static int waker_drop(struct wakers *w, struct waker_cpu *cpu, uint32_t number, bool is_cut)
{
	struct waker_row *row;

	if (!cpu->is_sought || !cpu->is_awake)
		return 0;
	cpu->is_sought = false;
	row = waker_row(w, number, TEXT("(unknown)"));
	if (!row)
		return -ENOMEM;
	row->cut += is_cut;
	row->open += !is_cut;
	return 0;
}

int wakers_on_event(struct wakers *w, const struct trace_event *ev)
{
	struct waker_cpu *cpu = waker_cpu(w, ev->cpu);
	int r;

	if (!cpu)
		return -ENOMEM;
	if (!cpu->is_sought || cpu->row)
		return 0;
	if (ev->id == w->sched_switch)
		return cpu->is_awake ? waker_settle(w, cpu, ev->cpu) : 0;
	r = wakers_source(w, ev, &cpu->row);
	return r == 0 && cpu->row && cpu->is_awake ? waker_settle(w, cpu, ev->cpu) : r;
}

int wakers_on_idle(struct wakers *w, uint32_t number)
{
	struct waker_cpu *cpu = waker_cpu(w, number);
	int r = 0;

	if (!cpu)
		return -ENOMEM;
	if (cpu->is_sought && cpu->is_awake)
		r = waker_settle(w, cpu, number);
	*cpu = (struct waker_cpu){ .is_sought = true };
	return r;
}

int wakers_on_awake(struct wakers *w, uint32_t number, uint64_t ns)
{
	struct waker_cpu *cpu = waker_cpu(w, number);

	if (!cpu)
		return -ENOMEM;
	if (!cpu->is_sought)
		return 0;
	cpu->is_awake = true;
	cpu->ns = ns;
	cpu->at = w->env->ts;
	return cpu->row ? waker_settle(w, cpu, number) : 0;
}

int wakers_on_loss(struct wakers *w, uint32_t number)
{
	struct waker_cpu *cpu = waker_cpu(w, number);
	int r = cpu ? waker_drop(w, cpu, number, true) : -ENOMEM;

	if (cpu)
		cpu->is_sought = false;
	return r;
}

int wakers_end(struct wakers *w)
{
	int r = 0;

	for (uint32_t i = 0; i < w->cpus.count && r == 0; i++) {
		struct waker_cpu *cpu = rows_at(&w->cpus, i);

		r = waker_drop(w, cpu, (uint32_t)row_key_of(cpu)->a, false);
	}
	return r;
}
