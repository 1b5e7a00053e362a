/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "selection.h"

#include <stdlib.h>

/* One without a colon was taken for a filter of the event before it. */
static int chosen_part_open_filter(struct chosen_part *ret, const struct options *o,
				   struct error *err)
{
	const size_t most = o->event_filters.count + o->event_count + 1;
	_cleanup_free_ const char **texts = calloc(most, sizeof(*texts));
	size_t count = 0;
	int r;

	if (!texts)
		return error_errno(err, -ENOMEM, "can't choose events");
	for (size_t i = 0; i < o->event_filters.count; i++)
		texts[count++] = o->event_filters.items[i];
	for (size_t i = 0; i < o->event_count; i++)
		if (o->events[i].filter)
			texts[count++] = o->events[i].filter;
	if (o->lone_filter)
		texts[count++] = o->lone_filter;
	if (!count)
		return 0;
	r = filter_new(&ret->filter, texts, count, err);
	if (r == 0)
		ret->wanted.filter = filter_event_filter(ret->filter);
	return r;
}

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
	return r < 0 ? r : chosen_part_open_filter(ret, o, err);
}

void chosen_part_deinit(struct chosen_part *p)
{
	cpu_set_deinit(&p->cpus);
	filter_free(p->filter);
	free(p->events);
	*p = (struct chosen_part)CHOSEN_PART_INIT;
}
