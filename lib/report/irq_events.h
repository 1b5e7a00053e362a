/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pairs of events around a handler: irq:irq_handler_entry and _exit, irq:softirq_entry and
 * _exit, and irq_vectors:NAME_entry and _exit for each of the kernel's own interrupts.
 */
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

#define IRQ_VECTORS_MAX 64

struct irq_vector {
	uint16_t entry, exit; /* ids of its events */
	struct text name;     /* borrowed from the event */
};

struct irq_vectors {
	struct irq_vector all[IRQ_VECTORS_MAX];
	size_t count;
};

/* Asks for all of irq_vectors, of which both events are recorded. False: there is none. */
bool irq_vectors_ask(struct irq_vectors *v, struct report *r, report_handler on_entry,
		     report_handler on_exit);
/* The one whose entry or exit has that id. NULL: none. */
const struct irq_vector *irq_vectors_find(const struct irq_vectors *v, uint16_t id);

/* The key of a handler's interval on a CPU, for per_cpu_get(). */
static inline uint64_t irq_events_key(unsigned kind, uint64_t number)
{
	return (uint64_t)kind << 40 | (uint32_t)number;
}
