/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/scheduler.h"

#include "export/selection.h"
#include "report/recorded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Bits of prev_state since Linux 4.14: TASK_REPORT_MAX marks a task that was preempted. */
#define STATE_REPORT_MAX 0x100U
#define STATE_DEAD 0x10U
#define STATE_ZOMBIE 0x20U

struct sched_cpu {
	struct sched_task *runs; /* NULL: idle, or unknown */
	struct sched_task *left; /* was switched out last; NULL: idle, or unknown */
	struct sched_task *lost; /* ran when events were lost; NULL: none */
	bool lost_idle;		 /* was idle when events were lost */
	bool known;		 /* runs is right */
	bool seen;		 /* it had a switch, or lost events */
	uint64_t since;
};

struct switch_fields {
	struct field_at prev_pid, prev_state, next_pid;
};

/* Tasks that were found last, by low bits of their tids. A power of two. */
#define SCHED_RECENT 4096U

struct scheduler {
	struct report report; /* handlers get one */
	struct report_env *env;
	struct recorded recorded;
	struct sched_listener listeners[SCHED_LISTENERS_MAX];
	size_t listener_count;
	struct switch_fields sw;
	struct field_at waking_pid, wakeup_pid, new_pid, exec_pid, exec_old_pid;
	bool has_waking, has_wakeups;
	struct rows tasks; /* of struct sched_task, by tid */
	struct sched_task *recent[SCHED_RECENT];
	struct sched_cpu *cpus; /* owned */
	uint32_t cpu_count;
};

int scheduler_new(struct scheduler **ret, struct report_env *env)
{
	struct scheduler *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->env = env;
	s->report.env = env;
	if (recorded_init(&s->recorded, env->info) < 0) {
		scheduler_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void scheduler_note(const struct scheduler *s, const struct report *listener, struct table *t)
{
	bool listens = false;

	for (size_t i = 0; i < s->listener_count; i++)
		listens |= s->listeners[i].report == listener;
	if (listens)
		recorded_note(&s->recorded, t);
}

const struct report *scheduler_report(const struct scheduler *s)
{
	return &s->report;
}

struct scheduler *scheduler_free(struct scheduler *s)
{
	if (!s)
		return NULL;
	recorded_deinit(&s->recorded);
	rows_deinit(&s->tasks);
	free(s->cpus);
	free(s);
	return NULL;
}

bool scheduler_has_wakeups(const struct scheduler *s)
{
	return s->has_wakeups;
}

bool scheduler_has_idle(const struct scheduler *s)
{
	return !s->recorded.some_tasks && !s->recorded.some_switches;
}

bool sched_span_is_selected(const struct report_env *env, const struct sched_span *span)
{
	return !env->selection || (selection_has_cpu(env->selection, span->cpu) &&
				   selection_has_task(env->selection, span->task->tid, span->to));
}

/* A span whose begin or end may be among events that were not recorded. */
static void scheduler_cut_unknown(const struct scheduler *s, size_t what, struct sched_span *span)
{
	const struct recorded *r = &s->recorded;

	if (span->state != SPAN_WHOLE ||
	    !(r->some_switches || (what != SCHED_RUNS && (r->some_cpus || r->some_wakeups))))
		return;
	span->state = SPAN_CUT;
	span->from = span->to;
}

static inline int scheduler_call(const struct sched_listener *l, size_t what,
				 const struct sched_span *span, const struct sched_task *next)
{
	if (what == SCHED_RUNS)
		return l->ran ? l->ran(l->report, span, next) : 0;
	if (what == SCHED_WAITS)
		return l->waited ? l->waited(l->report, span) : 0;
	return what == SCHED_SLEEPS && l->slept ? l->slept(l->report, span) : 0;
}

/* The recording is looked at in part, or lacks events. */
static _noinline_ int scheduler_tell_some(struct scheduler *s, size_t what, struct sched_span *span,
					  const struct sched_task *next)
{
	const bool selected = sched_span_is_selected(s->env, span);
	int r = 0;

	if (!span->task->is_recorded)
		return 0;
	scheduler_cut_unknown(s, what, span);
	for (size_t i = 0; i < s->listener_count && r == 0; i++)
		if (selected || s->listeners[i].wants_all)
			r = scheduler_call(&s->listeners[i], what, span, next);
	return r;
}

static inline int scheduler_tell(struct scheduler *s, size_t what, struct sched_span *span,
				 const struct sched_task *next)
{
	int r = 0;

	/* Clocks of CPUs differ, and can step back. */
	span->from = MIN(span->from, span->to);
	if (unlikely(s->env->selection || s->recorded.is_partial))
		return scheduler_tell_some(s, what, span, next);
	for (size_t i = 0; i < s->listener_count && r == 0; i++)
		r = scheduler_call(&s->listeners[i], what, span, next);
	return r;
}

static void sched_task_identify(struct scheduler *s, struct sched_task *t)
{
	t->known = report_task(s->env, t->tid, s->env->ts);
	t->is_recorded = recorded_has_task(&s->recorded, t->tid, s->env->ts);
}

/*
 * Begins a task's life, or another one of the same tid. Its mark is 0: after a loss, events of the
 * task may be among the lost ones.
 */
static void sched_task_begin(struct scheduler *s, struct sched_task *t, int32_t tid)
{
	*t = (struct sched_task){
		.tid = tid,
		.cpu = UINT32_MAX,
		.waker = -1,
	};
	sched_task_identify(s, t);
	memset(t->row, 0, s->listener_count * sizeof(*t->row));
}

/* *ret NULL: there are too many tasks. */
static _noinline_ int scheduler_search(struct scheduler *s, int32_t tid, struct sched_task **ret)
{
	struct sched_task *t = rows_search(&s->tasks, (struct row_key){ (uint32_t)tid, 0 });

	if (!t)
		return -ENOMEM;
	*ret = NULL;
	if (t == s->tasks.rest)
		return 0;
	if (!t->tid || t->ends)
		sched_task_begin(s, t, tid);
	s->recent[(uint32_t)tid % SCHED_RECENT] = *ret = t;
	return 0;
}

/* *ret NULL: the idle task, or there are too many tasks. */
static inline int scheduler_task(struct scheduler *s, int32_t tid, struct sched_task **ret)
{
	struct sched_task *t = s->recent[(uint32_t)tid % SCHED_RECENT];

	if (likely(t && t->tid == tid && !t->ends)) {
		*ret = t;
		return 0;
	}
	if (tid > 0)
		return scheduler_search(s, tid, ret);
	*ret = NULL;
	return 0;
}

/* The task of that tid that the CPU runs, which the last switch has found. */
static struct sched_task *scheduler_known(const struct sched_cpu *c, int32_t tid)
{
	return c->known && c->runs && c->runs->tid == tid && !c->runs->ends ? c->runs : NULL;
}

uint32_t scheduler_tasks(const struct scheduler *s)
{
	return s->tasks.count;
}

bool scheduler_is_partial(const struct scheduler *s)
{
	return s->recorded.is_partial;
}

struct sched_task *scheduler_find(struct scheduler *s, int32_t tid)
{
	struct sched_task *t = rows_find(&s->tasks, (struct row_key){ (uint32_t)tid, 0 });

	return t && t->tid && !t->ends ? t : NULL;
}

bool sched_task_dies(const struct sched_task *t)
{
	return t->left_state & (STATE_DEAD | STATE_ZOMBIE);
}

char sched_task_letter(const struct sched_task *t)
{
	static const char letters[] = "SDTtXZPI";

	return t->left_state ? letters[__builtin_ctz(t->left_state)] : 'R';
}

static _noinline_ struct sched_cpu *scheduler_add_cpu(struct scheduler *s, uint32_t cpu)
{
	uint32_t cap = s->cpu_count, from = cap;

	if (cpu >= REPORT_CPUS_MAX || vec_reserve(s->cpus, s->cpu_count, cap, cpu + 1 - from) < 0)
		return NULL;
	s->cpu_count = cpu + 1;
	memset(&s->cpus[from], 0, (cpu + 1 - from) * sizeof(*s->cpus));
	return &s->cpus[cpu];
}

static inline struct sched_cpu *scheduler_cpu(struct scheduler *s, uint32_t cpu)
{
	return likely(cpu < s->cpu_count) ? &s->cpus[cpu] : scheduler_add_cpu(s, cpu);
}

struct sched_task *scheduler_running(struct scheduler *s, uint32_t cpu)
{
	return cpu < s->cpu_count ? s->cpus[cpu].runs : NULL;
}

struct sched_task *scheduler_left(struct scheduler *s, uint32_t cpu)
{
	return cpu < s->cpu_count ? s->cpus[cpu].left : NULL;
}

static void sched_task_enter(struct scheduler *s, struct sched_task *t, enum sched_state state)
{
	t->state = state;
	t->since = s->env->ts;
	t->mark = report_mark(s->env);
}

/* The state of a span whose begin, or any event in it, may be missing. */
static enum span_state scheduler_span_state(const struct scheduler *s, const struct sched_task *t)
{
	if (report_is_whole(s->env, t->mark))
		return t->state == SCHED_UNKNOWN ? SPAN_OPEN : SPAN_WHOLE;
	return SPAN_CUT;
}

static int scheduler_tell_cut_run(struct scheduler *s, struct sched_task *t, uint32_t cpu)
{
	struct sched_span span = { t, cpu, s->env->ts, s->env->ts, SPAN_CUT, true, false };

	return scheduler_tell(s, SCHED_RUNS, &span, NULL);
}

/*
 * The switch that ended the CPU's run is missing. The run is counted with the CPU's next switch: if
 * that ends a run of the same task, both can be one.
 */
static void scheduler_lose_run(struct sched_cpu *c, uint32_t cpu)
{
	struct sched_task *t = c->runs;

	/* Otherwise another CPU has had events of the task since. */
	if (t && t->state == SCHED_RUNS && t->cpu == cpu) {
		t->state = SCHED_UNKNOWN;
		t->mark = UINT64_MAX;
	}
	*c = (struct sched_cpu){ .seen = true,
				 .lost = t ?: c->lost,
				 .lost_idle = c->known ? !t : c->lost_idle };
}

static int scheduler_tell_idle(struct scheduler *s, uint32_t cpu, uint64_t from,
			       enum span_state state)
{
	const uint64_t to = s->env->ts;
	int r = 0;

	from = state == SPAN_WHOLE ? MIN(from, to) : to;
	for (size_t i = 0; i < s->listener_count && r == 0; i++)
		if (s->listeners[i].idled &&
		    (s->listeners[i].wants_all || selection_has_cpu(s->env->selection, cpu)))
			r = s->listeners[i].idled(s->listeners[i].report, cpu, from, to, state);
	return r;
}

/* The CPU's task, or its idle task, ran until now. Losses of other CPUs don't matter to it. */
static int scheduler_end_run(struct scheduler *s, struct sched_cpu *c, uint32_t cpu,
			     struct sched_task *prev, const struct sched_task *next)
{
	struct sched_span span = { prev, cpu, c->since, s->env->ts, SPAN_WHOLE, false, false };
	int r = 0;

	/* Some kernels leave out switches. */
	if (c->known && c->runs != prev)
		scheduler_lose_run(c, cpu);
	if (c->lost && c->lost != prev)
		r = scheduler_tell_cut_run(s, c->lost, cpu);
	if (c->lost_idle && prev && r == 0)
		r = scheduler_tell_idle(s, cpu, 0, SPAN_CUT);
	if (!c->known)
		span.state = c->seen ? SPAN_CUT : SPAN_OPEN;
	else if (!prev && !scheduler_has_idle(s))
		span.state = SPAN_CUT;
	if (r < 0)
		return r;
	if (!prev)
		return scheduler_tell_idle(s, cpu, span.from, span.state);
	if (span.state != SPAN_WHOLE)
		span.from = span.to;
	return scheduler_tell(s, SCHED_RUNS, &span, next);
}

/* The task goes on with another state, and the event that ended this one is missing. */
static int scheduler_cut(struct scheduler *s, struct sched_task *t, uint32_t cpu)
{
	struct sched_span span = { t, cpu, s->env->ts, s->env->ts, SPAN_CUT, false, false };

	return scheduler_tell(s, t->state, &span, NULL);
}

static void scheduler_leave(struct scheduler *s, struct sched_task *prev, uint32_t cpu)
{
	if (!prev)
		return;
	prev->preempted = !prev->left_state;
	prev->out_ts = s->env->ts;
	prev->waker = -1;
	prev->waker_task = NULL;
	prev->ends = sched_task_dies(prev);
	prev->cpu = cpu;
	sched_task_enter(s, prev, prev->left_state ? SCHED_SLEEPS : SCHED_WAITS);
}

/* The next task waited until now, if its wake-up was seen. */
static int scheduler_end_wait(struct scheduler *s, struct sched_task *next, uint32_t cpu)
{
	struct sched_span span = { next, cpu, next->since, s->env->ts, SPAN_WHOLE, false, false };
	int r = 0;

	if (next->state == SCHED_RUNS) {
		/* It was switched out where events are missing. */
		span.state = SPAN_CUT;
	} else {
		span.state = scheduler_span_state(s, next);
		if (next->state == SCHED_SLEEPS) {
			/* Only the wake-up is missing: it was not recorded, or filtered. */
			if (span.state == SPAN_WHOLE)
				return 0;
			r = scheduler_cut(s, next, cpu);
		}
	}
	if (span.state != SPAN_WHOLE)
		span.from = span.to;
	return r ?: scheduler_tell(s, SCHED_WAITS, &span, NULL);
}

/* The task is switched out. Its span before this run is cut if the switch in is missing. */
static int scheduler_end_before(struct scheduler *s, struct sched_task *prev, uint32_t state,
				uint32_t cpu)
{
	int r = 0;

	if (!prev)
		return 0;
	if (prev->state == SCHED_WAITS || prev->state == SCHED_SLEEPS)
		r = scheduler_cut(s, prev, cpu);
	prev->left_state = state & (STATE_REPORT_MAX - 1);
	return r;
}

static int scheduler_on_switch(struct report *report, const struct trace_event *ev)
{
	struct scheduler *s = container_of(report, struct scheduler, report);
	const int32_t prev_pid = field_at_pid(&s->sw.prev_pid, &ev->rec);
	struct sched_cpu *c = scheduler_cpu(s, ev->cpu);
	struct sched_task *prev, *next;
	int r;

	if (!c)
		return -ENOMEM;
	r = scheduler_task(s, field_at_pid(&s->sw.next_pid, &ev->rec), &next);
	prev = scheduler_known(c, prev_pid);
	if (r == 0 && !prev)
		r = scheduler_task(s, prev_pid, &prev);
	if (r == 0)
		r = scheduler_end_before(
			s, prev, (uint32_t)field_at_read(&s->sw.prev_state, &ev->rec), ev->cpu);
	if (r == 0)
		r = scheduler_end_run(s, c, ev->cpu, prev, next);
	if (r < 0)
		return r;
	scheduler_leave(s, prev, ev->cpu);
	if (next) {
		r = scheduler_end_wait(s, next, ev->cpu);
		sched_task_enter(s, next, SCHED_RUNS);
		next->cpu = ev->cpu;
	}
	*c = (struct sched_cpu){
		.runs = next, .left = prev, .known = true, .seen = true, .since = ev->rec.ts
	};
	return r;
}

enum wake { WAKE_FIRST, WAKE_SECOND, WAKE_NEW };

/* Whether the event begins no wait: the task runs, or waits already. */
static bool scheduler_wakes_nobody(const struct scheduler *s, const struct sched_task *t,
				   enum wake wake)
{
	/* It runs: it is about to sleep, and does not. Or its switch is missing. */
	if (t->state == SCHED_RUNS)
		return true;
	if (t->state != SCHED_WAITS || !report_is_whole(s->env, t->mark))
		return false;
	/* sched_waking comes twice only if the task ran in between, or was preempted. */
	return wake != WAKE_FIRST || t->preempted || !t->woken;
}

static int scheduler_end_sleep(struct scheduler *s, struct sched_task *t, uint32_t cpu)
{
	struct sched_span span = { t,	  cpu,	t->since, s->env->ts, scheduler_span_state(s, t),
				   false, false };

	/* It has run since, nobody knows where. */
	if (t->state == SCHED_WAITS)
		return scheduler_cut(s, t, t->cpu);
	if (span.state != SPAN_WHOLE)
		span.from = span.to;
	return scheduler_tell(s, SCHED_SLEEPS, &span, NULL);
}

/* Mostly the CPU's task, which is known without a search. */
static const struct task *scheduler_known_waker(const struct scheduler *s,
						const struct trace_event *ev)
{
	const struct sched_task *t = ev->cpu < s->cpu_count ? s->cpus[ev->cpu].runs : NULL;

	return t && t->tid == ev->pid ? t->known : NULL;
}

const struct task *scheduler_waker(const struct scheduler *s, const struct sched_task *t)
{
	return t->waker_task ?: report_task(s->env, t->waker, s->env->ts);
}

static int scheduler_wake(struct scheduler *s, int32_t tid, const struct trace_event *ev,
			  enum wake wake)
{
	struct sched_task *t;
	int r = scheduler_task(s, tid, &t);
	bool late;

	if (r < 0 || !t)
		return r;
	if (wake == WAKE_NEW && t->state != SCHED_UNKNOWN)
		sched_task_begin(s, t, tid);
	if (scheduler_wakes_nobody(s, t, wake))
		return 0;
	/* The wait began with a sched_waking that may be among lost events. */
	late = wake == WAKE_SECOND && s->has_waking && !report_is_whole(s->env, t->mark);
	t->waker = ev->pid;
	t->waker_task = scheduler_known_waker(s, ev);
	t->waker_cpu = ev->cpu;
	t->woken_by_interrupt = ev->flags & REPORT_FLAGS_INTERRUPT;
	/* A wait whose sched_waking was seen goes on, and is cut. */
	if (wake != WAKE_NEW && !(late && t->state == SCHED_WAITS))
		r = scheduler_end_sleep(s, t, ev->cpu);
	t->preempted = false;
	t->woken = wake == WAKE_FIRST;
	sched_task_enter(s, t, SCHED_WAITS);
	if (late)
		t->mark = UINT64_MAX;
	return r;
}

static int scheduler_on_waking(struct report *report, const struct trace_event *ev)
{
	struct scheduler *s = container_of(report, struct scheduler, report);

	return scheduler_wake(s, field_at_pid(&s->waking_pid, &ev->rec), ev, WAKE_FIRST);
}

static int scheduler_on_wakeup(struct report *report, const struct trace_event *ev)
{
	struct scheduler *s = container_of(report, struct scheduler, report);

	return scheduler_wake(s, field_at_pid(&s->wakeup_pid, &ev->rec), ev, WAKE_SECOND);
}

static int scheduler_on_new(struct report *report, const struct trace_event *ev)
{
	struct scheduler *s = container_of(report, struct scheduler, report);

	return scheduler_wake(s, field_at_pid(&s->new_pid, &ev->rec), ev, WAKE_NEW);
}

/* A thread that executes a program takes its process's first tid, while it runs. */
static int scheduler_on_exec(struct report *report, const struct trace_event *ev)
{
	struct scheduler *s = container_of(report, struct scheduler, report);
	struct sched_task *old = scheduler_find(s, field_at_pid(&s->exec_old_pid, &ev->rec));
	struct sched_cpu *c = scheduler_cpu(s, ev->cpu);
	struct sched_task *t;
	int r = scheduler_task(s, field_at_pid(&s->exec_pid, &ev->rec), &t);

	if (r < 0 || !t || !old || old == t)
		return r;
	sched_task_begin(s, t, t->tid);
	t->cpu = ev->cpu;
	sched_task_enter(s, t, SCHED_RUNS);
	old->ends = true;
	if (c && c->runs == old)
		c->runs = t;
	return 0;
}

static bool scheduler_begin(struct scheduler *s)
{
	const bool big = s->env->big_endian;
	const struct event *ev;

	if (!report_on(s->env, &s->report, "sched", "sched_switch", scheduler_on_switch, &ev))
		return false;
	s->sw = (struct switch_fields){
		.prev_pid = field_at_find(ev, "prev_pid", big),
		.prev_state = field_at_find(ev, "prev_state", big),
		.next_pid = field_at_find(ev, "next_pid", big),
	};
	if (report_on(s->env, &s->report, "sched", "sched_waking", scheduler_on_waking, &ev)) {
		s->waking_pid = field_at_find(ev, "pid", big);
		s->has_waking = s->has_wakeups = true;
	}
	if (report_on(s->env, &s->report, "sched", "sched_wakeup", scheduler_on_wakeup, &ev)) {
		s->wakeup_pid = field_at_find(ev, "pid", big);
		s->has_wakeups = true;
	}
	if (report_on(s->env, &s->report, "sched", "sched_wakeup_new", scheduler_on_new, &ev))
		s->new_pid = field_at_find(ev, "pid", big);
	if (report_on(s->env, &s->report, "sched", "sched_process_exec", scheduler_on_exec, &ev)) {
		s->exec_pid = field_at_find(ev, "pid", big);
		s->exec_old_pid = field_at_find(ev, "old_pid", big);
	}
	return true;
}

static size_t scheduler_task_size(const struct scheduler *s)
{
	return sizeof(struct sched_task) + s->listener_count * sizeof(void *);
}

int scheduler_listen(struct scheduler *s, const struct sched_listener *listener)
{
	if (s->listener_count == SCHED_LISTENERS_MAX)
		return -E2BIG;
	if (!s->listener_count && !scheduler_begin(s))
		return -ENODATA;
	s->listeners[s->listener_count++] = *listener;
	/* No task has been seen yet. */
	rows_init(&s->tasks, scheduler_task_size(s), NULL);
	return (int)s->listener_count - 1;
}

int scheduler_loss(struct scheduler *s, uint32_t cpu)
{
	struct sched_cpu *c = scheduler_cpu(s, cpu);

	if (!c)
		return -ENOMEM;
	scheduler_lose_run(c, cpu);
	return 0;
}

int scheduler_close(struct scheduler *s)
{
	int r = 0;

	for (uint32_t i = 0; i < s->cpu_count && r == 0; i++) {
		const struct sched_cpu *c = &s->cpus[i];

		if (c->lost)
			r = scheduler_tell_cut_run(s, c->lost, i);
		if (r == 0 && (c->lost_idle || (c->known && !c->runs)))
			r = scheduler_tell_idle(s, i, 0, c->lost_idle ? SPAN_CUT : SPAN_OPEN);
	}
	for (uint32_t i = 0; i < s->tasks.count && r == 0; i++) {
		struct sched_task *t = rows_at(&s->tasks, i);
		struct sched_span span = { t,	      t->cpu, s->env->ts, s->env->ts,
					   SPAN_OPEN, false,  false };

		/* Its end may be lost. Losses of other CPUs don't matter to a run. */
		if (t->state != SCHED_RUNS && !report_is_whole(s->env, t->mark))
			span.state = SPAN_CUT;
		if (t->state != SCHED_UNKNOWN && !t->ends)
			r = scheduler_tell(s, t->state, &span, NULL);
	}
	return r;
}

int scheduler_split(struct scheduler *s)
{
	int r = 0;

	for (uint32_t i = 0; i < s->cpu_count && r == 0; i++) {
		struct sched_cpu *c = &s->cpus[i];
		struct sched_span span = {
			c->runs, i, c->since, s->env->ts, SPAN_WHOLE, false, true
		};

		if (!c->known || !c->runs || s->env->ts <= c->since)
			continue;
		c->since = s->env->ts;
		r = scheduler_tell(s, SCHED_RUNS, &span, NULL);
	}
	return r;
}

/* A task that ended, or whose end is lost, has no event any more. */
static bool sched_task_is_over(const struct scheduler *s, const struct sched_task *t)
{
	return t->ends || (t->known && task_table_is_gone(t->known, s->env->ts));
}

static struct sched_task *sched_task_moved(const struct rows *tasks, const struct sched_task *t)
{
	return t ? rows_find(tasks, (struct row_key){ (uint32_t)t->tid, 0 }) : NULL;
}

/* Leaves out tasks that have ended; with_rows: listeners' rows stay. */
static int scheduler_repack(struct scheduler *s, bool with_rows)
{
	const size_t size = scheduler_task_size(s);
	struct rows tasks;

	rows_init(&tasks, size, NULL);
	for (uint32_t i = 0; i < s->tasks.count; i++) {
		struct sched_task *t = rows_at(&s->tasks, i), *copy;

		if (!t->tid || sched_task_is_over(s, t))
			continue;
		copy = rows_get(&tasks, (struct row_key){ (uint32_t)t->tid, 0 });
		if (!copy) {
			rows_deinit(&tasks);
			return -ENOMEM;
		}
		memcpy(copy, t, with_rows ? size : sizeof(*t));
		/* The waker may be forgotten. */
		copy->waker_task = NULL;
		if (!copy->known)
			sched_task_identify(s, copy);
	}
	for (uint32_t i = 0; i < s->cpu_count; i++) {
		s->cpus[i].runs = sched_task_moved(&tasks, s->cpus[i].runs);
		s->cpus[i].left = sched_task_moved(&tasks, s->cpus[i].left);
		s->cpus[i].lost = sched_task_moved(&tasks, s->cpus[i].lost);
	}
	rows_deinit(&s->tasks);
	s->tasks = tasks;
	memset(s->recent, 0, sizeof(s->recent));
	return 0;
}

int scheduler_renew(struct scheduler *s)
{
	return scheduler_repack(s, false);
}

int scheduler_forget_ended(struct scheduler *s)
{
	return scheduler_repack(s, true);
}
