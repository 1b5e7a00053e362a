/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditions that a running recording is watched for, as people type them:
 *
 * 	sched.delay > 5ms for comm=pulse*     a task waited for a CPU
 * 	irq.max > 1ms for name=eth*           a handler of an interrupt ran
 * 	softirq.max > 1ms for name=NET_RX     a softirq ran
 * 	mark "frame" > 16ms                   a slice of an application took
 * 	event sched:sched_process_exit if comm == "x"
 * 	lost > 0                              events were lost
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define WATCH_CONDITIONS_MAX 16
#define WATCH_TEXT_MAX 1024 /* bytes of a condition */

enum watch_kind {
	WATCH_DELAY,
	WATCH_IRQ,
	WATCH_SOFTIRQ,
	WATCH_MARK,
	WATCH_EVENT,
	WATCH_LOST,
};

/* Strings are owned. */
struct watch_condition {
	enum watch_kind kind;
	uint64_t above; /* ns; of WATCH_LOST: events */
	char *name;	/* of the slice; a glob for interrupts and softirqs; NULL: any */
	char *comm;	/* a glob; NULL: any */
	int32_t tid;	/* 0: any */
	int32_t cpu;	/* -1: any */
	char *system, *event;
	char *filter; /* in the kernel's language; NULL: none */
};

/* -EINVAL: the message shows the place, the hint says what is possible there. */
int watch_condition_parse(const char *text, struct watch_condition *ret, struct error *err);
void watch_condition_deinit(struct watch_condition *c);

/* The condition's kind in a word: "sched.delay". */
const char *watch_kind_name(enum watch_kind kind);
/* Events that it needs, "system:event", NULL-terminated; not of WATCH_EVENT. */
const char *const *watch_kind_events(enum watch_kind kind);
