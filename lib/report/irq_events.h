/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pairs of events around a handler: irq_handler_entry and _exit, softirq_entry and _exit. */
#pragma once

#include "report/kind.h"

struct irq_events {
	bool has_entry, has_exit;
	struct field_at number, exit_number;
	struct string_at name; /* in an interrupt's entry only */
};

/* Asks for both events of irq:PREFIX_entry and _exit. field: of the handler's number. */
void irq_events_ask(struct irq_events *e, struct report *r, const char *prefix, const char *field,
		    report_handler on_entry, report_handler on_exit);

/* The key of a handler's interval on a CPU, for per_cpu_get(). */
static inline uint64_t irq_events_key(unsigned kind, uint64_t number)
{
	return (uint64_t)kind << 40 | (uint32_t)number;
}
