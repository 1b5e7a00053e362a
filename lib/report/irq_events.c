/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/irq_events.h"

#include <stdio.h>
#include <string.h>

void irq_events_ask(struct irq_events *e, struct report *r, const char *prefix, const char *field,
		    report_handler on_entry, report_handler on_exit)
{
	struct report_env *env = r->env;
	const struct event *entry = NULL, *exit = NULL;
	char name[32];

	snprintf(name, sizeof(name), "%s_entry", prefix);
	e->has_entry = report_on(env, r, "irq", name, on_entry, &entry);
	snprintf(name, sizeof(name), "%s_exit", prefix);
	e->has_exit = report_on(env, r, "irq", name, on_exit, &exit);
	e->number = field_at_find(entry, field, env->big_endian);
	e->name = string_at_find(entry, "name", env->big_endian);
	e->exit_number = field_at_find(exit, field, env->big_endian);
}

/* The length of NAME if the event is irq_vectors:NAME_entry, or 0. */
static size_t irq_vector_name(const struct event *ev)
{
	static const char suffix[] = "_entry";
	size_t len = strlen(ev->name);

	return !strcmp(ev->system, "irq_vectors") && len >= sizeof(suffix) &&
			       !strcmp(ev->name + len - strlen(suffix), suffix)
		       ? len - strlen(suffix)
		       : 0;
}

bool irq_vectors_ask(struct irq_vectors *v, struct report *r, report_handler on_entry,
		     report_handler on_exit)
{
	const struct event *const *all;
	size_t count;

	all = event_table_all(r->env->info->events, &count);
	for (size_t i = 0; i < count && v->count < IRQ_VECTORS_MAX; i++) {
		size_t len = irq_vector_name(all[i]);
		const struct event *exit;
		char name[64];

		snprintf(name, sizeof(name), "%.*s_exit", (int)MIN(len, sizeof(name)),
			 all[i]->name);
		if (!len || !report_on(r->env, r, "irq_vectors", name, on_exit, &exit) ||
		    !report_on(r->env, r, "irq_vectors", all[i]->name, on_entry, NULL))
			continue;
		v->all[v->count++] = (struct irq_vector){ all[i]->id,
							  exit->id,
							  { all[i]->name, (uint32_t)len } };
	}
	return v->count > 0;
}

const struct irq_vector *irq_vectors_find(const struct irq_vectors *v, uint16_t id)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->all[i].entry == id || v->all[i].exit == id)
			return &v->all[i];
	return NULL;
}
