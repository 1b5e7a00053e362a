/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/group.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "base/secret_hash.h"

static const char *const grouping_names[] = { "thread", "comm", "process", "cpu" };

enum grouping grouping_find(const char *by)
{
	enum grouping g = GROUP_THREAD;

	while (by && g < GROUP_CPU && strcmp(grouping_names[g], by) != 0)
		g++;
	return g;
}

/* A hash has 128 bits and depends on a secret: no two names share it. */
struct row_key group_key_of_name(struct text name)
{
	XXH128_hash_t hash = XXH3_128bits_withSeed(name.data, name.len, hash_secret[0]);

	return (struct row_key){ hash.low64, hash.high64 };
}

struct row_key group_key_join(struct row_key a, struct row_key b)
{
	const uint64_t both[] = { a.a, a.b, b.a, b.b };
	XXH128_hash_t hash = XXH3_128bits_withSeed(both, sizeof(both), hash_secret[0]);

	return (struct row_key){ hash.low64, hash.high64 };
}

struct row_key group_key(enum grouping by, const struct task *task, int32_t tid, uint32_t cpu)
{
	switch (by) {
	case GROUP_COMM:
		return group_key_of_name(report_task_name(task, tid));
	case GROUP_PROCESS:
		return (struct row_key){ (uint32_t)(task && task->tgid ? task->tgid : tid), 0 };
	case GROUP_CPU:
		return (struct row_key){ cpu, 0 };
	default:
		return (struct row_key){ (uint32_t)tid, task ? task->from_ts : 0 };
	}
}

void group_begin(const struct report_env *env, const struct rows *rows, struct group *g,
		 enum grouping by, const struct task *task, int32_t tid, uint32_t cpu)
{
	if (g->used)
		return;
	*g = (struct group){ task, tid, cpu, true, (void *)g == rows->rest };
	if (by == GROUP_PROCESS && task && task->tgid) {
		g->tid = task->tgid;
		g->task = report_task(env, task->tgid, env->ts) ?: task;
	}
}

void *group_get(const struct report_env *env, struct rows *rows, enum grouping by,
		const struct task *task, int32_t tid, uint32_t cpu)
{
	void *row = rows_get(rows, group_key(by, task, tid, cpu));

	if (row)
		group_begin(env, rows, row, by, task, tid, cpu);
	return row;
}

static const struct column thread_columns[] = { { "task", COLUMN_TEXT }, { "tid", COLUMN_NUMBER } };
static const struct column process_columns[] = { { "process", COLUMN_TEXT },
						 { "pid", COLUMN_NUMBER } };
static const struct column comm_columns[] = { { "comm", COLUMN_TEXT } };
static const struct column cpu_columns[] = { { "cpu", COLUMN_NUMBER } };

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
	return table_new(ret, name, all, before + count, sort);
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
		table_put_number(t, group->is_rest ? -1 : group->tid);
	}
}
