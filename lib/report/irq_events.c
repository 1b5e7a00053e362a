/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/irq_events.h"

#include <stdio.h>

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
