/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret_hash.h"
#include "base/vec.h"

DEFINE_TABLE(pf_tid_slots, struct pf_tid_births, int32_t, slot->used, hash_u32((uint32_t)slot->tid),
	     slot->tid == key);

void pf_tasks_deinit(struct pf_tasks *t)
{
	TABLE_DEINIT(&t->tids);
	free(t->there);
	free(t->coming);
	free(t->renames);
	free(t->births);
	*t = (struct pf_tasks){ 0 };
}

/* Frees the room of entries that were taken, in time proportional to these. */
#define DROP_TAKEN(list, next, count)                                                              \
	do {                                                                                       \
		if ((next) < (count) - (next))                                                     \
			break;                                                                     \
		vec_remove(list, count, 0, next);                                                  \
		(next) = 0;                                                                        \
	} while (0)

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
	DROP_TAKEN(t->renames, t->rename_next, t->rename_count);
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
	DROP_TAKEN(t->coming, t->coming_next, t->coming_count);
	while ((task = task_table_next(t->table, t->known))) {
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

static struct pf_tid_births *pf_tasks_births_of(const struct pf_tasks *t, int32_t tid)
{
	return pf_tid_slots_find(&t->tids, hash_u32((uint32_t)tid), tid);
}

/* The oldest birth of all is also its tid's oldest. */
static void pf_tasks_drop_birth(struct pf_tasks *t)
{
	const struct pf_birth *birth = &t->births[t->birth_next++];
	struct pf_tid_births *of = pf_tid_slots_probe(t->tids.slots, t->tids.size,
						      hash_u32((uint32_t)birth->tid), birth->tid);

	if (of->first == of->last)
		pf_tid_slots_remove(&t->tids, of);
	else
		of->first = birth->next;
}

/* Drops those of tasks born before ts. */
static void pf_tasks_drop_births(struct pf_tasks *t, uint64_t ts)
{
	while (t->birth_next < t->birth_count && t->births[t->birth_next].ts + PF_BIRTH_NS < ts)
		pf_tasks_drop_birth(t);
}

struct task *pf_tasks_next(struct pf_tasks *t, uint64_t ts)
{
	struct task *task;

	if (t->coming_next == t->coming_count || t->coming[t->coming_next]->from_ts > ts) {
		pf_tasks_drop_births(t, ts);
		return NULL;
	}
	task = t->coming[t->coming_next++];
	t->there[t->there_count++] = task;
	return task;
}

static int pf_tasks_add_birth(struct pf_tasks *t, const struct pf_birth *birth)
{
	uint64_t number = t->births_gone + t->birth_count;
	struct pf_tid_births *of =
		pf_tid_slots_place(&t->tids, hash_u32((uint32_t)birth->tid), birth->tid);

	if (!of || vec_push(t->births, t->birth_count, t->birth_cap, *birth) < 0)
		return -ENOMEM;
	if (of->used) {
		t->births[of->last - t->births_gone].next = number;
		of->last = number;
		return 0;
	}
	*of = (struct pf_tid_births){ true, birth->tid, number, number };
	t->tids.count++;
	return 0;
}

int pf_tasks_see_births(struct pf_tasks *t, const struct pf_birth *births, size_t count)
{
	size_t before = t->birth_count;
	int r = 0;

	if (count)
		DROP_TAKEN(t->births, t->birth_next, t->birth_count);
	t->births_gone += before - t->birth_count;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = pf_tasks_add_birth(t, &births[i]);
	return r;
}

uint64_t pf_tasks_written_at(struct pf_tasks *t, const struct task *task)
{
	const struct pf_tid_births *of;
	uint64_t ts = task->from_ts, birth_ts;

	/* Tasks come in the order of their births: no later one needs these. */
	pf_tasks_drop_births(t, ts);
	of = pf_tasks_births_of(t, task->tid);
	birth_ts = of ? t->births[of->first - t->births_gone].ts : 0;
	return of && birth_ts <= ts + PF_BIRTH_NS ? MAX(ts, birth_ts + 1) : ts;
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

/* A task with such a birth or rename may be gone long enough to be forgotten. */
static bool pf_tasks_is_old(uint64_t event_ts, uint64_t ts)
{
	return event_ts + TASK_LINGER_NS / 2 < ts;
}

void pf_tasks_forget(struct pf_tasks *t, uint64_t ts)
{
	/* Tasks not yet written are still needed, as are those whose renames are not. */
	if (pf_tasks_learn(t) < 0 ||
	    (t->coming_next < t->coming_count &&
	     pf_tasks_is_old(t->coming[t->coming_next]->from_ts, ts)) ||
	    (t->rename_next < t->rename_count &&
	     pf_tasks_is_old(t->renames[t->rename_next].ts, ts)))
		return;
	pf_tasks_leave_out_gone(t, ts);
	task_table_forget(t->table, ts);
}
