/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "selection.h"

#include <stdlib.h>

int chosen_part_open(struct chosen_part *ret, const struct options *o, struct error *err)
{
	struct export_selection *w = &ret->wanted;
	int r = 0;

	if (o->whole)
		return 0;
	*w = (struct export_selection){
		.from = o->from,
		.to = o->to,
		.pids = o->pids,
		.pid_count = o->pid_count,
		.threads = o->threads,
		.thread_count = o->thread_count,
		.comm = o->comm,
	};
	ret->events = calloc(o->event_count + 1, sizeof(*ret->events));
	if (!ret->events)
		return error_errno(err, -ENOMEM, "can't choose events");
	w->events = ret->events;
	for (size_t i = 0; i < o->event_count; i++)
		ret->events[w->event_count++] = o->events[i].glob;
	if (o->cpus) {
		r = parse_cpu_list(o->cpus, &ret->cpus, err);
		w->cpus = &ret->cpus;
	}
	if (r < 0 || !o->event_filters.count)
		return r;
	r = filter_new(&ret->filter, o->event_filters.items, o->event_filters.count, err);
	if (r == 0)
		w->filter = filter_event_filter(ret->filter);
	return r;
}

void chosen_part_deinit(struct chosen_part *p)
{
	cpu_set_deinit(&p->cpus);
	filter_free(p->filter);
	free(p->events);
	*p = (struct chosen_part)CHOSEN_PART_INIT;
}
