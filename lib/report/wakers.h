/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What ended each idle time of a CPU: its first interrupt since it went idle. Some idle loops say
 * that the CPU is awake before its interrupt is handled; so one that comes before the next switch
 * or idle time counts, too.
 */
#pragma once

#include "report/irq_events.h"

#define WAKER_NAME_MAX 48U

struct waker_row {
	uint32_t cpu;
	uint8_t name_len;
	bool used, is_rest;
	char name[WAKER_NAME_MAX];
	struct histogram time; /* idle times that it ended */
	uint64_t max_at, cut, open;
};

struct wakers {
	struct report_env *env;
	struct rows rows; /* of struct waker_row, by CPU and name */
	struct rows cpus;
	struct irq_vectors vectors;
	uint16_t handler, ipi, sched_switch; /* ids of events; 0: not recorded */
	struct field_at irq;
	struct string_at name;
};

/*
 * Asks for interrupts and switches, each of which on_event must pass to wakers_on_event(). False:
 * no interrupts are recorded.
 */
bool wakers_init(struct wakers *w, struct report *r, report_handler on_event);
void wakers_deinit(struct wakers *w);

/* These return 0 or -ENOMEM. */
int wakers_on_event(struct wakers *w, const struct trace_event *ev);
int wakers_on_idle(struct wakers *w, uint32_t cpu);
/* An idle time of that length ended now. */
int wakers_on_awake(struct wakers *w, uint32_t cpu, uint64_t ns);
/* Events of the CPU were lost. */
int wakers_on_loss(struct wakers *w, uint32_t cpu);
/* After the last event. */
int wakers_end(struct wakers *w);
