/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report `delays`: the longest single waits for a CPU, and who ran there meanwhile. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/cpu_runs.h"
#include "report/group.h"
#include "report/scheduler.h"

/* Waits that are kept: the longest ones. */
#define DELAYS_MAX 1000U
/* Tasks that are told apart among those that ran in one wait. */
#define RUNNERS_MAX 64U

struct delay {
	uint64_t at, ns, most_ns;
	struct text task, waker, most; /* names; of the export */
	uint32_t cpu;
	int32_t tid, most_tid;
	bool is_preempted;
};

struct delays {
	struct report report;
	struct rows tasks;	       /* of struct group */
	struct cpu_runs runs;	       /* runners: of these */
	struct delay kept[DELAYS_MAX]; /* a heap: the shortest one first */
	size_t count;
	uint64_t waits, cut, open;
	int index; /* of sched_task.row */
};

/* How long one task ran in a wait. */
struct delay_share {
	const struct group *runner;
	uint64_t ns;
};

static const struct group *delays_task(struct delays *d, struct sched_task *t)
{
	if (unlikely(!t->row[d->index]))
		t->row[d->index] =
			group_get(d->report.env, &d->tasks, GROUP_THREAD, t->known, t->tid, 0);
	return t->row[d->index];
}

static int delays_on_ran(struct report *report, const struct sched_span *span,
			 const struct sched_task *next _unused_)
{
	struct delays *d = container_of(report, struct delays, report);
	const struct group *runner;

	if (span->state != SPAN_WHOLE)
		return 0;
	runner = delays_task(d, span->task);
	return runner ? cpu_runs_keep(&d->runs, span->cpu, runner, span->from, span->to) : -ENOMEM;
}

/* The task that ran longest in the wait. NULL: nobody is known to have run. */
static const struct group *delays_most(const struct delays *d, const struct sched_span *span,
				       uint64_t *ret_ns)
{
	struct runs_within runs = runs_within(&d->runs, span->cpu, span->from, span->to);
	struct delay_share shares[RUNNERS_MAX], most = { NULL, 0 };
	const struct group *runner;
	size_t count = 0, i;
	uint64_t ns;

	while ((runner = runs_within_next(&runs, &ns))) {
		for (i = 0; i < count && shares[i].runner != runner; i++)
			;
		if (i == RUNNERS_MAX)
			continue;
		if (i == count)
			shares[count++] = (struct delay_share){ runner, 0 };
		shares[i].ns += ns;
		if (shares[i].ns > most.ns)
			most = shares[i];
	}
	*ret_ns = most.ns;
	return most.runner;
}

/* Puts a wait at the heap's place i, or below, where all are longer. */
static void delays_sift(struct delays *d, size_t i, const struct delay *delay)
{
	for (size_t child; (child = 2 * i + 1) < d->count; i = child) {
		child += child + 1 < d->count && d->kept[child + 1].ns < d->kept[child].ns;
		if (d->kept[child].ns >= delay->ns)
			break;
		d->kept[i] = d->kept[child];
	}
	d->kept[i] = *delay;
}

static void delays_keep(struct delays *d, const struct delay *delay)
{
	size_t i;

	if (d->count == DELAYS_MAX) {
		delays_sift(d, 0, delay);
		return;
	}
	for (i = d->count++; i && d->kept[(i - 1) / 2].ns > delay->ns; i = (i - 1) / 2)
		d->kept[i] = d->kept[(i - 1) / 2];
	d->kept[i] = *delay;
}

static int delays_on_waited(struct report *report, const struct sched_span *span)
{
	struct delays *d = container_of(report, struct delays, report);
	const struct sched_task *t = span->task;
	const struct group *most;
	struct delay delay = { .at = span->to, .ns = span->to - span->from };

	if (!sched_span_is_selected(report->env, span))
		return 0;
	d->cut += span->state == SPAN_CUT;
	d->open += span->state == SPAN_OPEN;
	if (span->state != SPAN_WHOLE)
		return 0;
	d->waits++;
	if (d->count == DELAYS_MAX && delay.ns <= d->kept[0].ns)
		return 0;
	delay.cpu = span->cpu;
	delay.tid = t->tid;
	delay.task = report_task_name(t->known, t->tid);
	delay.is_preempted = t->preempted;
	if (!t->preempted)
		delay.waker =
			report_task_name(scheduler_waker(report->env->scheduler, t), t->waker);
	most = delays_most(d, span, &delay.most_ns);
	if (most) {
		delay.most = report_task_name(most->task, most->tid);
		delay.most_tid = most->is_folded || most->is_rest ? -1 : most->tid;
	}
	delays_keep(d, &delay);
	return 0;
}

static int delays_open(struct report **ret, struct report_env *env)
{
	struct delays *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->report.env = env;
	rows_init(&d->tasks, sizeof(struct group), NULL);
	*ret = &d->report;
	d->index = scheduler_listen(env->scheduler, &(struct sched_listener){
							    .report = &d->report,
							    .wants_all = true,
							    .ran = delays_on_ran,
							    .waited = delays_on_waited,
						    });
	return MIN(d->index, 0);
}

static const struct column delays_columns[] = {
	COLUMN("at", COLUMN_AT),	  COLUMN("cpu", COLUMN_NUMBER),
	COLUMN("task", COLUMN_TEXT),	  COLUMN("tid", COLUMN_NUMBER),
	COLUMN("delay", COLUMN_TIME),	  COLUMN("waker", COLUMN_TEXT),
	COLUMN("most", COLUMN_TEXT),	  COLUMN("most-tid", COLUMN_NUMBER),
	COLUMN("most-time", COLUMN_TIME),
};

static int delays_close(struct report *report, struct table **ret)
{
	struct delays *d = container_of(report, struct delays, report);
	int r = table_new(ret, "delays", delays_columns, ARRAY_SIZE(delays_columns), "delay");
	struct table *t = r == 0 ? *ret : NULL;

	for (size_t i = 0; t && i < d->count; i++) {
		const struct delay *one = &d->kept[i];

		table_put_count(t, one->at);
		table_put_number(t, one->cpu);
		table_put_text(t, one->task);
		table_put_number(t, one->tid);
		table_put_count(t, one->ns);
		table_put_text(t, one->is_preempted ? TEXT("(preempted)") : one->waker);
		table_put_text(t, one->most);
		table_put_number(t, one->most_tid);
		table_put_count(t, one->most_ns);
	}
	if (t && d->waits > d->count)
		table_note(t, "of %" PRIu64 " waits these are the longest", d->waits);
	if (t)
		table_total_cut(t, "waits without a row", d->cut, d->open);
	if (t)
		group_note(t, GROUP_THREAD, &d->tasks);
	if (t && !scheduler_has_wakeups(report->env->scheduler))
		table_note(t, "no wake-ups were recorded: waits are of preempted tasks only");
	return r;
}

static void delays_free(struct report *report)
{
	struct delays *d = container_of(report, struct delays, report);

	cpu_runs_deinit(&d->runs);
	rows_deinit(&d->tasks);
	free(d);
}

const struct report_kind report_delays = {
	.about = {
		.name = "delays",
		.summary = "the longest waits for a CPU, and who ran there meanwhile",
		.is_usual = true,
		.events = "sched",
	},
	.open = delays_open,
	.close = delays_close,
	.free = delays_free,
};
