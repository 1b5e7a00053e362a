/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/jobs.h"

#include <string.h>

void jobs_add(struct jobs *j, struct job *job)
{
	size_t i = j->count++;

	for (; i > j->is_recording && j->items[i - 1].start_ns > job->start_ns; i--)
		j->items[i] = j->items[i - 1];
	j->items[i] = *job;
	*job = (struct job){ 0 };
}

void jobs_remove(struct jobs *j, size_t i)
{
	order_deinit(&j->items[i].order);
	j->count--;
	memmove(&j->items[i], &j->items[i + 1], (j->count - i) * sizeof(j->items[0]));
	if (i == 0)
		j->is_recording = j->is_withdrawn = false;
}

bool jobs_have(const struct jobs *j, uint64_t serial)
{
	for (size_t i = 0; i < j->count; i++)
		if (j->items[i].order.serial == serial)
			return true;
	return false;
}

const struct job *jobs_next(const struct jobs *j)
{
	return j->count > j->is_recording ? &j->items[j->is_recording] : NULL;
}

void jobs_deinit(struct jobs *j)
{
	for (size_t i = 0; i < j->count; i++)
		order_deinit(&j->items[i].order);
	*j = (struct jobs){ 0 };
}
