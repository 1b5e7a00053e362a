/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/group.h"

#include <errno.h>
#include <string.h>

static const char *const grouping_names[] = { "thread", "comm", "process", "cpu" };

enum grouping grouping_find(const char *by)
{
	enum grouping g = GROUP_THREAD;

	while (by && g < GROUP_CPU && strcmp(grouping_names[g], by) != 0)
		g++;
	return g;
}

struct row_key group_key(enum grouping by, const struct task *task, int32_t tid, uint32_t cpu)
{
	switch (by) {
	case GROUP_COMM:
		return row_key_of_text(report_task_name(task, tid));
	case GROUP_PROCESS:
		return (struct row_key){ (uint32_t)(task && task->tgid ? task->tgid : tid), 0 };
	case GROUP_CPU:
		return (struct row_key){ cpu, 0 };
	default:
		return (struct row_key){ (uint32_t)tid, task ? task->from_ts : 0 };
	}
}

/* Whether a task that has no row yet shares one. */
static bool group_folds(const struct rows *rows, enum grouping by, const struct task *task)
{
	if (likely(rows->count < GROUP_ENDED_MAX) || (by != GROUP_THREAD && by != GROUP_PROCESS))
		return false;
	return rows->count >= GROUP_ALL_MAX || (task && task_table_gone(task));
}

void *group_find(struct rows *rows, enum grouping by, const struct task *task, int32_t tid,
		 uint32_t cpu, const struct row_key *more)
{
	struct row_key key = group_key(by, task, tid, cpu);
	struct group *g;

	if (more)
		key = row_key_join(key, *more);
	if (likely(!group_folds(rows, by, task)))
		return rows_get(rows, key);
	g = rows_find(rows, key);
	if (g)
		return g;
	/* The tid is that of none. */
	key = row_key_join(row_key_of_text(report_task_name(task, tid)), (struct row_key){ 1, 0 });
	if (more)
		key = row_key_join(key, *more);
	g = rows_get(rows, key);
	if (g && !g->used)
		g->is_folded = true;
	return g;
}

void group_begin(const struct report_env *env, const struct rows *rows, struct group *g,
		 enum grouping by, const struct task *task, int32_t tid, uint32_t cpu)
{
	if (g->used)
		return;
	*g = (struct group){ task, tid, cpu, true, (void *)g == rows->rest, g->is_folded };
	if (by == GROUP_PROCESS && task && task->tgid) {
		g->tid = task->tgid;
		g->task = report_task(env, task->tgid, env->ts) ?: task;
	}
}

void *group_get(const struct report_env *env, struct rows *rows, enum grouping by,
		const struct task *task, int32_t tid, uint32_t cpu)
{
	void *row = group_find(rows, by, task, tid, cpu, NULL);

	if (row)
		group_begin(env, rows, row, by, task, tid, cpu);
	return row;
}

static const struct column thread_columns[] = { COLUMN("task", COLUMN_TEXT),
						COLUMN("tid", COLUMN_NUMBER) };
static const struct column process_columns[] = { COLUMN("process", COLUMN_TEXT),
						 COLUMN("pid", COLUMN_NUMBER) };
static const struct column comm_columns[] = { COLUMN("comm", COLUMN_TEXT) };
static const struct column cpu_columns[] = { COLUMN("cpu", COLUMN_NUMBER) };

static const struct {
	const struct column *columns;
	size_t count;
} group_columns[] = {
	[GROUP_THREAD] = { thread_columns, ARRAY_SIZE(thread_columns) },
	[GROUP_COMM] = { comm_columns, ARRAY_SIZE(comm_columns) },
	[GROUP_PROCESS] = { process_columns, ARRAY_SIZE(process_columns) },
	[GROUP_CPU] = { cpu_columns, ARRAY_SIZE(cpu_columns) },
};

int group_table(struct table **ret, const char *name, enum grouping by, const struct column *values,
		size_t count, const char *sort)
{
	struct column all[COLUMNS_MAX];
	const size_t before = group_columns[by].count;

	if (before + count > COLUMNS_MAX)
		return -E2BIG;
	memcpy(all, group_columns[by].columns, before * sizeof(*all));
	memcpy(all + before, values, count * sizeof(*all));
	/* A group has shares of its own. */
	for (size_t i = before; i < before + count; i++)
		if (all[i].adds == ADDS_SHARE)
			all[i].same += before;
	return table_new(ret, name, all, before + count, sort);
}

void group_note(struct table *t, enum grouping by, const struct rows *rows)
{
	uint32_t folded = 0;

	for (uint32_t i = 0; i < rows->count; i++)
		folded += ((const struct group *)rows_at(rows, i))->is_folded;
	if (folded)
		table_note(t,
			   "too many %s: those that ended, or came late, share %u rows by name, "
			   "with the id -1",
			   by == GROUP_THREAD ? "threads" : "processes", folded);
}

void group_put(struct table *t, enum grouping by, const struct group *group)
{
	const struct task *task = group->task;
	struct text name = group->is_rest ? TEXT("(others)") : report_task_name(task, group->tid);

	switch (by) {
	case GROUP_CPU:
		table_put_number(t, group->is_rest ? -1 : (int64_t)group->cpu);
		break;
	case GROUP_COMM:
		table_put_text(t, name);
		break;
	default:
		table_put_text(t, name);
		table_put_number(t, group->is_rest || group->is_folded ? -1 : group->tid);
	}
}
