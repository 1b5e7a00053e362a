/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A synthetic machine whose recording loses events. Tests know what it really did, and so what the
 * recording can tell. Every failure fails the test.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "make_stream.h"

#define CPUS 3
#define TASKS 7
#define TID 101
#define EVENTS 1500
#define FIRST_TS (UINT64_C(50) * 1000000000)

#define ID_WAKEUP 310
#define ID_EXEC 311

enum kind { SWITCH, WAKING, WAKEUP };

struct happening {
	enum kind kind;
	uint64_t ts;
	unsigned cpu;
	int32_t pid, other; /* prev and next; waker and the woken task */
	uint32_t state;	    /* prev_state */
	bool lost, after_loss;
	uint64_t missed; /* before it, on its CPU */
};

struct machine_run {
	struct happening all[EVENTS];
	size_t count;
	uint64_t seed, ts;
	int32_t runs[CPUS]; /* 0: idle */
	enum { SLEEPS, WAITS, RUNS } tasks[TASKS];
};

/* Events of a random machine, with that many losses. */
void run_machine(struct machine_run *m, uint64_t seed, unsigned losses);
/* Begins a recording of it; one CPU's sub-buffers; one event. */
void sched_begin(struct maker *m);
void put_cpu(struct maker *m, const struct machine_run *run, unsigned cpu);
void put_happening(struct maker *m, const struct happening *h);

/* The one table of a report. The caller frees it. */
json_t *report_of(int fd, const char *name, const char *by, const char *task);
/* UINT64_MAX: null. */
uint64_t number_of(const json_t *row, const char *key);
/* Reads a note that ends with ": cut N, open N". */
void counts_of(const json_t *table, uint64_t *cut, uint64_t *open);

/*
 * No loss touches the time from event `from` to event `to`. A loss reaches from the CPU's last
 * event before it to the next one after it. cpu -1: of all CPUs.
 */
bool is_whole(const struct machine_run *m, size_t from, size_t to, int cpu);
/* The last event before `to` of that kind, with the task as the one woken or switched. */
bool find_before(const struct machine_run *m, size_t to, enum kind kind, int32_t tid, bool as_prev,
		 size_t *ret);
/* The switch before `out` on its CPU. */
bool find_switch_in(const struct machine_run *m, size_t out, size_t *ret);

struct truth {
	uint64_t wait, delay; /* UINT64_MAX: unknown */
	int32_t waker;	      /* -1: unknown or none */
};
/* How a run that begins with event `in` came about, as far as the recording can tell. */
struct truth truth_before(const struct machine_run *m, size_t in);
