/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What tasks did, out of sched_switch and the wake-ups: they ran, waited for a CPU, or slept.
 *
 * 	wake-up          switch in            switch out
 * 	   |---- waited ----|------- ran --------|---- slept ----|--- waited ...
 *
 * A wait begins at the earlier of sched_waking and sched_wakeup, or when the task was switched out
 * while it was runnable. It ends when the task is switched in. A span is passed on once, when its
 * end is seen, or when a later event of the task shows that the end is missing. Spans that lost
 * events may have cut are SPAN_CUT, those that the recording's edges cut SPAN_OPEN; their times
 * mean nothing then.
 */
#pragma once

#include "report/kind.h"

#define SCHED_LISTENERS_MAX 16

enum span_state {
	SPAN_WHOLE,
	SPAN_CUT,
	SPAN_OPEN,
};

enum sched_state {
	SCHED_UNKNOWN = 0,
	SCHED_RUNS,
	SCHED_WAITS,
	SCHED_SLEEPS,
};

/* A thread from its first event to its end. */
struct sched_task {
	int32_t tid;
	uint8_t state;	/* enum sched_state */
	bool preempted; /* the wait began without a wake-up */
	bool woken;	/* the wait began with a sched_waking */
	bool ends;	/* was switched out for the last time */
	bool woken_by_interrupt;
	bool is_recorded;    /* all of its events are in the recording */
	uint32_t cpu;	     /* where it runs, or ran last; UINT32_MAX: nowhere yet */
	uint32_t left_state; /* bits of prev_state when it was switched out; 0: runnable */
	int32_t waker;	     /* of the last wake-up; -1: unknown */
	uint32_t waker_cpu;
	const struct task *waker_task; /* scheduler_waker() */
	uint64_t since, mark;	       /* begin of the state, and report_mark() then */
	uint64_t out_ts;	       /* when it was switched out last; 0: unknown */
	const struct task *known;      /* NULL: unknown */
	void *row[];		       /* each listener's own, for its use; NULL at first */
};

struct sched_span {
	struct sched_task *task;
	uint32_t cpu; /* of the switch or wake-up that ends the span */
	uint64_t from, to;
	enum span_state state;
	bool late; /* a run that is cut: the task may have waited, or run elsewhere, since */
	bool part; /* a whole run's part, up to the end of a window; its rest comes later */
};

/* Whether it is of a task and CPU that are to be reported on. */
bool sched_span_is_selected(const struct report_env *env, const struct sched_span *span);

/* Called at the end of a span. Members may be NULL. Return 0 or -errno. */
struct sched_listener {
	struct report *report;
	/* It wants the spans of all tasks, also of those that are not selected. */
	bool wants_all;
	/* next: the task that runs from now on; NULL: the idle task, or unknown after a loss. */
	int (*ran)(struct report *r, const struct sched_span *span, const struct sched_task *next);
	int (*waited)(struct report *r, const struct sched_span *span);
	int (*slept)(struct report *r, const struct sched_span *span);
	/* The idle task ran. */
	int (*idled)(struct report *r, uint32_t cpu, uint64_t from, uint64_t to,
		     enum span_state state);
};

int scheduler_new(struct scheduler **ret, struct report_env *env);
struct scheduler *scheduler_free(struct scheduler *s);
/*
 * Returns the index of the listener's member of sched_task.row, or -errno. The events are asked for
 * with the first listener. -ENODATA: the recording has no sched_switch.
 */
int scheduler_listen(struct scheduler *s, const struct sched_listener *listener);
/* At the end of a run: whether it is the task's last one. */
bool sched_task_dies(const struct sched_task *t);
/* The letter of left_state, as the kernel prints it: R, S, D and so on. */
char sched_task_letter(const struct sched_task *t);
/* Tasks that are known so far. */
uint32_t scheduler_tasks(const struct scheduler *s);
/* Whether a filter, or a choice of tasks or CPUs, kept events out of the recording. */
bool scheduler_is_partial(const struct scheduler *s);
/* The thread's state now; NULL: it had no event of the scheduler. */
struct sched_task *scheduler_find(struct scheduler *s, int32_t tid);
/* The task that woke this one up last. NULL: it is unknown. */
const struct task *scheduler_waker(const struct scheduler *s, const struct sched_task *t);
/* The task that runs on that CPU; NULL: the idle task, or unknown. */
struct sched_task *scheduler_running(struct scheduler *s, uint32_t cpu);

/*
 * The task that the CPU's last switch switched out; NULL: the idle task, or events were lost since.
 */
struct sched_task *scheduler_left(struct scheduler *s, uint32_t cpu);

int scheduler_loss(struct scheduler *s, uint32_t cpu);
/* After the last event: spans that go on are SPAN_OPEN, or SPAN_CUT if events were lost in them. */
int scheduler_close(struct scheduler *s);
/* Passes on the parts of all runs up to now, as `part`. Waits and sleeps count when they end. */
int scheduler_split(struct scheduler *s);
/*
 * Begins a window: listeners' rows are forgotten, and so are tasks that have ended. Before, no row
 * may have a task that is still used.
 */
int scheduler_renew(struct scheduler *s);
/*
 * Frees the blocks of tasks that have ended, so that a recording without an end needs bounded
 * memory. Not from a listener: other tasks' blocks move. Returns 0 or -ENOMEM.
 */
int scheduler_forget_ended(struct scheduler *s);
/* The scheduler as a report: its events are for the spans of all tasks. */
const struct report *scheduler_report(const struct scheduler *s);
/* Says below a listener's table which spans are unknown in such a recording. */
void scheduler_note(const struct scheduler *s, const struct report *listener, struct table *t);
/* Whether wake-ups were recorded: without them no wait of a sleeping task is known. */
bool scheduler_has_wakeups(const struct scheduler *s);
/* False: only some tasks or switches are recorded, so nobody knows when a CPU was idle. */
bool scheduler_has_idle(const struct scheduler *s);
