/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/known_tasks.h"

void known_tasks_init(struct known_tasks *k, struct task_table *table)
{
	*k = (struct known_tasks){ .table = table, .searches = task_table_may_fill(table) };
}

void known_tasks_add(struct known_tasks *k, int32_t pid, uint64_t ts)
{
	struct known_task *t = &k->known[(uint32_t)pid % KNOWN_TASKS];
	const struct task *task;

	*t = (struct known_task){ .pid = pid, .span = UINT64_MAX };
	if (pid <= 0)
		return;
	task = task_table_find(k->table, pid, ts);
	if (task) {
		t->from_ts = task_is_oldest(task) ? 0 : task->from_ts;
		t->span = task_table_until(task) - t->from_ts;
	}
	k->searches = task_table_may_fill(k->table);
}
