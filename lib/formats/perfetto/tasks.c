/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void pf_tasks_deinit(struct pf_tasks *t)
{
	free(t->there);
	free(t->coming);
	free(t->renames);
	*t = (struct pf_tasks){ 0 };
}

static int pf_tasks_by_birth(const void *a, const void *b)
{
	const struct task *x = *(struct task *const *)a, *y = *(struct task *const *)b;

	return x->from_ts < y->from_ts ? -1 : x->from_ts > y->from_ts;
}

static int pf_tasks_by_tid(const void *a, const void *b)
{
	const struct task *x = *(struct task *const *)a, *y = *(struct task *const *)b;

	return x->tid != y->tid ? (x->tid < y->tid ? -1 : 1) : pf_tasks_by_birth(a, b);
}

static int pf_tasks_by_rename(const void *a, const void *b)
{
	const struct task_rename *x = a, *y = b;

	return x->ts < y->ts ? -1 : x->ts > y->ts;
}

static int pf_tasks_learn_renames(struct pf_tasks *t)
{
	_cleanup_free_ struct task_rename *fresh = NULL;
	size_t count = task_table_take_renames(t->table, &fresh);

	if (!count)
		return 0;
	if (t->rename_next == t->rename_count)
		t->rename_next = t->rename_count = 0;
	if (vec_reserve(t->renames, t->rename_count, t->rename_cap, count) < 0)
		return -ENOMEM;
	memcpy(t->renames + t->rename_count, fresh, count * sizeof(*fresh));
	t->rename_count += count;
	qsort(t->renames + t->rename_next, t->rename_count - t->rename_next, sizeof(*t->renames),
	      pf_tasks_by_rename);
	return 0;
}

const char *pf_task_name(const struct task *task)
{
	return task->renames ? task->comm_before : task->comm;
}

const struct task *pf_tasks_next_rename(struct pf_tasks *t, uint64_t ts, uint64_t *ret_ts)
{
	while (t->rename_next < t->rename_count && t->renames[t->rename_next].ts <= ts) {
		const struct task_rename *r = &t->renames[t->rename_next++];
		struct task *task = task_table_find(t->table, r->tid, r->ts);

		if (!task || !task->renames)
			continue;
		task->renames--;
		/* Programs that start themselves anew keep their names. */
		if (!strcmp(task->comm_before, r->comm))
			continue;
		memcpy(task->comm_before, r->comm, sizeof(task->comm_before));
		*ret_ts = r->ts;
		return task;
	}
	return NULL;
}

int pf_tasks_learn(struct pf_tasks *t)
{
	bool in_order = true;
	struct task *task;

	if (pf_tasks_learn_renames(t) < 0)
		return -ENOMEM;
	while ((task = task_table_next(t->table, t->known))) {
		if (t->coming_next == t->coming_count)
			t->coming_next = t->coming_count = 0;
		if (vec_reserve(t->coming, t->coming_count, t->coming_cap, 1) < 0 ||
		    vec_reserve(t->there, t->there_count, t->there_cap,
				t->coming_count - t->coming_next + 1) < 0)
			return -ENOMEM;
		if (t->coming_count > t->coming_next)
			in_order &= t->coming[t->coming_count - 1]->from_ts <= task->from_ts;
		t->coming[t->coming_count++] = task;
		t->known = task;
	}
	if (!in_order)
		qsort(t->coming + t->coming_next, t->coming_count - t->coming_next,
		      sizeof(*t->coming), pf_tasks_by_birth);
	return 0;
}

struct task *pf_tasks_next(struct pf_tasks *t, uint64_t ts)
{
	struct task *task;

	if (t->coming_next == t->coming_count || t->coming[t->coming_next]->from_ts > ts)
		return NULL;
	task = t->coming[t->coming_next++];
	t->there[t->there_count++] = task;
	return task;
}

static void pf_tasks_leave_out_gone(struct pf_tasks *t, uint64_t ts)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->there_count; i++)
		if (!task_table_is_gone(t->there[i], ts))
			t->there[kept++] = t->there[i];
	t->there_count = kept;
}

struct task *const *pf_tasks_there(struct pf_tasks *t, uint64_t ts, size_t *ret_count)
{
	uint64_t renamed_ts;

	while (pf_tasks_next(t, ts))
		;
	while (pf_tasks_next_rename(t, ts, &renamed_ts))
		;
	pf_tasks_leave_out_gone(t, ts);
	if (t->there_count)
		qsort(t->there, t->there_count, sizeof(*t->there), pf_tasks_by_tid);
	*ret_count = t->there_count;
	return t->there;
}

void pf_tasks_forget(struct pf_tasks *t, uint64_t ts)
{
	/* Tasks not yet written are still needed, as are those whose renames are not. */
	if (t->coming_next < t->coming_count || pf_tasks_learn_renames(t) < 0 ||
	    t->rename_next < t->rename_count)
		return;
	pf_tasks_leave_out_gone(t, ts);
	task_table_forget(t->table, ts);
}
