/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/overhead.h"

#include "daemon/capture/tracefs/events.h"

#define BEYOND_MAX 3

int overhead_init(struct overhead *o, const struct capture_overhead *asked)
{
	*o = (struct overhead){ .permille = asked->cpu_permille };
	o->shed = calloc(asked->shed.count + 1, sizeof(*o->shed));
	if (!o->shed)
		return -ENOMEM;
	for (size_t i = 0; i < asked->shed.count; i++) {
		o->shed[i].glob = strdup(asked->shed.items[i]);
		if (!o->shed[i].glob)
			return -ENOMEM;
		o->shed_count++;
	}
	return 0;
}

void overhead_deinit(struct overhead *o)
{
	for (size_t i = 0; i < o->shed_count; i++) {
		free(o->shed[i].glob);
		buf_deinit(&o->shed[i].events);
	}
	free(o->shed);
	*o = (struct overhead){ 0 };
}

void overhead_restart(struct overhead *o)
{
	o->since_ns = 0;
}

enum overhead_step overhead_judge(struct overhead *o, uint64_t now_ns, uint64_t spent_ns)
{
	uint64_t passed = now_ns - o->since_ns, spent = spent_ns - o->spent_ns;
	bool first = !o->since_ns;

	if (!first && passed < OVERHEAD_LOOK_NS)
		return OVERHEAD_NONE;
	o->since_ns = now_ns;
	o->spent_ns = spent_ns;
	if (first)
		return OVERHEAD_NONE;
	o->share = (unsigned)(spent * 1000 / passed);
	if (o->share <= o->permille) {
		o->beyond = 0;
		return OVERHEAD_NONE;
	}
	if (o->widened < OVERHEAD_WIDEN_MAX) {
		o->widened++;
		return OVERHEAD_WIDEN;
	}
	if (o->shed_next < o->shed_count) {
		o->shed_next++;
		return OVERHEAD_SHED;
	}
	o->beyond = o->share > 2 * o->permille ? o->beyond + 1 : 0;
	return o->beyond >= BEYOND_MAX ? OVERHEAD_END : OVERHEAD_NONE;
}

int overhead_find(struct overhead *o, const struct event_matches *matches, struct error *err)
{
	for (size_t i = 0; i < o->shed_count; i++) {
		struct overhead_class *class = &o->shed[i];

		for (size_t n = 0; n < matches->count; n++)
			if (event_glob_matches(class->glob, matches->items[n].name))
				buf_append(&class->events, matches->items[n].name,
					   strlen(matches->items[n].name) + 1);
		if (buf_error(&class->events) < 0)
			return error_set(err, -ENOMEM, "out of memory");
		if (class->events.len)
			continue;
		error_set(err, -ENOENT, "cannot shed \"%s\": it is not recorded", class->glob);
		return error_hint(err, "--shed takes events that -e names, or a part of them");
	}
	return 0;
}
