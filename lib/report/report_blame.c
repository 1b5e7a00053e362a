/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tasks that ran on a CPU while another one waited for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret_hash.h"
#include "report/cpu_runs.h"
#include "report/group.h"
#include "report/scheduler.h"

/* Waits and runs. */
struct blame_task {
	struct group group;
	uint32_t number; /* from 1; 0: new */
	bool has_row;	 /* a pair in which it waits has a row */
};

struct blame_pair {
	struct blame_task *waiter;
	const struct blame_task *runner; /* NULL, both: pairs beyond the limit share this one */
	uint64_t count, time;
};

/* Pairs that were found last, by their numbers. A power of two. */
#define BLAME_RECENT (2 * ROWS_PAIRS_MAX)
/* Eight for each pair that can have a row. */
#define BLAME_BITS (8 * ROWS_PAIRS_MAX)

struct blame {
	struct report report;
	struct rows tasks, pairs;
	struct blame_pair *recent[BLAME_RECENT];
	uint64_t has_row[BLAME_BITS / 64]; /* bits by hashes of pairs; of several pairs, maybe */
	const struct blame_task *idle;
	struct blame_task unknown; /* ran when it is not known who did */
	struct cpu_runs runs;	   /* runners: struct blame_task */
	enum grouping grouping;
	uint64_t cut, open;
	int index; /* of sched_task.row */
};

#define BLAME_UNKNOWN (-1)

static const char *const blame_by[] = { "thread", "comm", "process", NULL };

static struct blame_task *blame_task_get(struct blame *b, const struct task *task, int32_t tid)
{
	struct blame_task *t = group_get(b->report.env, &b->tasks, b->grouping, task, tid, 0);

	if (t && !t->number)
		t->number = b->tasks.count;
	return t;
}

static struct blame_task *blame_task_of(struct blame *b, struct sched_task *t)
{
	if (unlikely(!t->row[b->index]))
		t->row[b->index] = blame_task_get(b, t->known, t->tid);
	return t->row[b->index];
}

static int blame_on_ran(struct report *report, const struct sched_span *span,
			const struct sched_task *next _unused_)
{
	struct blame *b = container_of(report, struct blame, report);
	const struct blame_task *runner;

	if (span->state != SPAN_WHOLE)
		return 0;
	runner = blame_task_of(b, span->task);
	return runner ? cpu_runs_keep(&b->runs, span->cpu, runner, span->from, span->to) : -ENOMEM;
}

static int blame_on_idled(struct report *report, uint32_t cpu, uint64_t from, uint64_t to,
			  enum span_state state)
{
	struct blame *b = container_of(report, struct blame, report);
	return state == SPAN_WHOLE ? cpu_runs_keep(&b->runs, cpu, b->idle, from, to) : 0;
}

/* Once others share a row, most pairs have none: that is known without a search in the rows. */
static struct blame_pair *blame_pair_search(struct blame *b, struct blame_task *waiter,
					    const struct blame_task *runner)
{
	const struct row_key key = { waiter->number, runner->number };
	const uint64_t bit = hash_number(key.a << 32 | key.b) % BLAME_BITS;
	uint64_t *word = &b->has_row[bit / 64], mask = UINT64_C(1) << bit % 64;
	struct blame_pair *pair;

	if (b->pairs.rest && !(*word & mask))
		return b->pairs.rest;
	pair = rows_search(&b->pairs, key);
	if (pair && pair != b->pairs.rest) {
		pair->waiter = waiter;
		pair->runner = runner;
		waiter->has_row = true;
		*word |= mask;
	}
	return pair;
}

static int blame_add(struct blame *b, struct blame_task *waiter, const struct blame_task *runner,
		     uint64_t ns)
{
	struct blame_pair **recent =
		&b->recent[(waiter->number * 509 + runner->number) % BLAME_RECENT];
	struct blame_pair *pair = *recent;

	if (unlikely(!pair || pair->waiter != waiter || pair->runner != runner)) {
		pair = blame_pair_search(b, waiter, runner);
		if (!pair)
			return -ENOMEM;
		if (pair->waiter)
			*recent = pair;
	}
	pair->count++;
	pair->time += ns;
	return 0;
}

/* All its pairs share the row of the others: only the sum matters. */
static void blame_add_to_rest(struct blame *b, struct runs_within *runs)
{
	struct blame_pair *rest = b->pairs.rest;
	uint64_t ns, count = runs_within_rest(runs, &ns);

	rest->count += count + (runs->left != 0);
	rest->time += ns + runs->left;
}

static int blame_on_waited(struct report *report, const struct sched_span *span)
{
	struct blame *b = container_of(report, struct blame, report);
	struct runs_within runs = runs_within(&b->runs, span->cpu, span->from, span->to);
	const struct blame_task *runner;
	struct blame_task *waiter;
	uint64_t ns;
	int r = 0;

	if (!sched_span_is_selected(report->env, span))
		return 0;
	b->cut += span->state == SPAN_CUT;
	b->open += span->state == SPAN_OPEN;
	if (span->state != SPAN_WHOLE || !runs.left)
		return 0;
	waiter = blame_task_of(b, span->task);
	if (!waiter)
		return -ENOMEM;
	if (b->pairs.rest && !waiter->has_row) {
		blame_add_to_rest(b, &runs);
		return 0;
	}
	while (r == 0 && (runner = runs_within_next(&runs, &ns)))
		r = blame_add(b, waiter, runner, ns);
	if (runs.left && r == 0)
		r = blame_add(b, waiter, &b->unknown, runs.left);
	return r;
}

static int blame_open(struct report **ret, struct report_env *env)
{
	struct blame *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->report.env = env;
	b->grouping = grouping_find(env->by);
	b->unknown.group.tid = BLAME_UNKNOWN;
	rows_init(&b->tasks, sizeof(struct blame_task), NULL);
	rows_init(&b->pairs, sizeof(struct blame_pair), NULL);
	b->pairs.max = ROWS_PAIRS_MAX;
	*ret = &b->report;
	b->idle = blame_task_get(b, NULL, 0);
	if (!b->idle)
		return -ENOMEM;
	b->index = scheduler_listen(env->scheduler, &(struct sched_listener){
							    .report = &b->report,
							    .wants_all = true,
							    .ran = blame_on_ran,
							    .waited = blame_on_waited,
							    .idled = blame_on_idled,
						    });
	return MIN(b->index, 0);
}

static const struct column blame_threads[] = {
	COLUMN("waiter", COLUMN_TEXT),
	COLUMN("waiter-tid", COLUMN_NUMBER),
	COLUMN("runner", COLUMN_TEXT),
	COLUMN("runner-tid", COLUMN_NUMBER),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("time", COLUMN_TIME),
	COLUMN("share", COLUMN_PERMILLE, .adds = ADDS_SHARE, .of = "time", .same = 2),
};
static const struct column blame_processes[] = {
	COLUMN("waiter", COLUMN_TEXT),
	COLUMN("waiter-pid", COLUMN_NUMBER),
	COLUMN("runner", COLUMN_TEXT),
	COLUMN("runner-pid", COLUMN_NUMBER),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("time", COLUMN_TIME),
	COLUMN("share", COLUMN_PERMILLE, .adds = ADDS_SHARE, .of = "time", .same = 2),
};
static const struct column blame_comms[] = {
	COLUMN("waiter", COLUMN_TEXT),
	COLUMN("runner", COLUMN_TEXT),
	COLUMN("count", COLUMN_COUNT),
	COLUMN("time", COLUMN_TIME),
	COLUMN("share", COLUMN_PERMILLE, .adds = ADDS_SHARE, .of = "time", .same = 1),
};

static int blame_table(const struct blame *b, struct table **ret)
{
	if (b->grouping == GROUP_COMM)
		return table_new(ret, "blame", blame_comms, ARRAY_SIZE(blame_comms), "time");
	return table_new(ret, "blame",
			 b->grouping == GROUP_THREAD ? blame_threads : blame_processes,
			 ARRAY_SIZE(blame_threads), "time");
}

static void blame_put_task(const struct blame *b, struct table *t, const struct blame_task *task)
{
	static const struct group rest = { .is_rest = true };

	if (task != &b->unknown) {
		group_put(t, b->grouping, task ? &task->group : &rest);
		return;
	}
	table_put_text(t, TEXT("(unknown)"));
	if (b->grouping != GROUP_COMM)
		table_put_number(t, BLAME_UNKNOWN);
}

static void blame_put_pair(const struct blame *b, struct table *t, const struct blame_pair *pair)
{
	blame_put_task(b, t, pair->waiter);
	blame_put_task(b, t, pair->runner);
	table_put_count(t, pair->count);
	table_put_count(t, pair->time);
	table_put_count(t, TABLE_DERIVED);
}

static int blame_close(struct report *report, struct table **ret)
{
	struct blame *b = container_of(report, struct blame, report);
	struct table *t;
	int r = blame_table(b, &t);

	if (r < 0)
		return r;
	*ret = t;
	for (uint32_t i = 0; i < rows_all(&b->pairs); i++)
		blame_put_pair(b, t, rows_each(&b->pairs, i));
	group_note(t, b->grouping, &b->tasks);
	table_total_cut(t, "waits that are not counted", b->cut, b->open);
	if (!scheduler_has_wakeups(report->env->scheduler))
		table_note(t, "no wake-ups were recorded: waits are of preempted tasks only");
	return 0;
}

static void blame_free(struct report *report)
{
	struct blame *b = container_of(report, struct blame, report);

	cpu_runs_deinit(&b->runs);
	rows_deinit(&b->tasks);
	rows_deinit(&b->pairs);
	free(b);
}

const struct report_kind report_blame = {
	.about = {
		.name = "blame",
		.summary = "who ran on a CPU while another task waited for it",
		.events = "sched",
		.by = blame_by,
	},
	.open = blame_open,
	.close = blame_close,
	.free = blame_free,
};
