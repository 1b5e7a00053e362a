/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/recorded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/event_glob.h"
#include "base/search.h"

/* Longest line of ancestors that is followed. */
#define ANCESTORS_MAX 64

static bool recorded_filters(const Traced__Capture__Request *request, const char *event)
{
	for (size_t i = 0; i < request->n_events; i++)
		if (*request->events[i]->filter &&
		    event_glob_has(request->events[i]->glob, "sched", event))
			return true;
	return false;
}

static int recorded_compare(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int recorded_sort(const int32_t *ids, size_t count, int32_t **ret)
{
	if (!count)
		return 0;
	*ret = reallocarray(NULL, count, sizeof(*ids));
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, ids, count * sizeof(*ids));
	qsort(*ret, count, sizeof(*ids), recorded_compare);
	return 0;
}

bool recorded_lacks_tracer(const struct trace_info *info, const char *tracer)
{
	const Traced__Capture__Request *request = info->header->request;

	if (!request)
		return false;
	if (*request->tracer)
		return strcmp(request->tracer, tracer) != 0;
	return request->n_events || request->n_probes || request->n_sql || request->n_triggers;
}

int recorded_init(struct recorded *r, const struct trace_info *info)
{
	const Traced__Capture__Request *request = info->header->request;

	*r = (struct recorded){ .info = info };
	if (!request)
		return 0;
	r->some_tasks = request->n_pids || request->n_processes;
	r->some_cpus = *request->cpus;
	r->some_switches = recorded_filters(request, "sched_switch");
	r->some_wakeups = recorded_filters(request, "sched_waking") ||
			  recorded_filters(request, "sched_wakeup") ||
			  recorded_filters(request, "sched_wakeup_new");
	r->is_partial = r->some_tasks || r->some_cpus || r->some_switches || r->some_wakeups;
	if (recorded_sort(request->pids, request->n_pids, &r->tids) < 0)
		return -ENOMEM;
	return recorded_sort(request->processes, request->n_processes, &r->processes);
}

void recorded_deinit(struct recorded *r)
{
	free(r->tids);
	free(r->processes);
}

static bool recorded_names(const int32_t *ids, size_t count, int32_t id)
{
	size_t at = lower_bound(i, count, ids[i] < id);

	return at < count && ids[at] == id;
}

/* A task that the request names, or a thread of a process that it names. */
static bool recorded_asks_for(const struct recorded *r, const struct task *task, int32_t tid)
{
	const Traced__Capture__Request *request = r->info->header->request;

	return recorded_names(r->tids, request->n_pids, tid) ||
	       (task && recorded_names(r->processes, request->n_processes, task->tgid));
}

bool recorded_has_task(const struct recorded *r, int32_t tid, uint64_t ts)
{
	const Traced__Capture__Request *request = r->info->header->request;
	const struct task *task;

	if (!r->some_tasks)
		return true;
	for (unsigned i = 0; i < ANCESTORS_MAX && tid > 0; i++) {
		task = task_table_find(r->info->tasks, tid, ts);
		if (recorded_asks_for(r, task, tid))
			return true;
		/* With --follow, what a recorded task starts is recorded, too. */
		if (!task || !request->children)
			return false;
		tid = task->tgid > 0 && task->tgid != tid ? task->tgid : task->ppid;
	}
	return false;
}

void recorded_note(const struct recorded *r, struct table *t)
{
	if (r->some_tasks)
		table_note(t, "only some tasks were recorded: the others are left out");
	if (r->some_cpus)
		table_note(t,
			   "only some CPUs were recorded: waits and sleeps are cut, as tasks may "
			   "have run elsewhere");
	if (r->some_switches || r->some_wakeups)
		table_note(t, "a filter left out some %s: %s cut",
			   r->some_switches ? "switches" : "wake-ups",
			   r->some_switches ? "all times are" : "waits and sleeps are");
}
