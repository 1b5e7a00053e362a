/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/noise_stack.h"

#include <stddef.h>
#include <string.h>

#include "report/kind.h"

unsigned noise_stack_enter(struct noise_stack *s, enum noise_source source, int32_t tid,
			   uint64_t ts)
{
	unsigned dropped = 0;

	if (s->depth == NOISE_DEPTH_MAX) {
		dropped = s->depth;
		s->depth = 0;
	}
	s->levels[s->depth++] = (struct noise_level){ source, tid, ts, 0 };
	return dropped;
}

bool noise_stack_leave(struct noise_stack *s, enum noise_source source, uint64_t ts,
		       uint64_t *ret_ns)
{
	struct noise_level *level = s->depth ? &s->levels[s->depth - 1] : NULL;
	uint64_t ns;

	if (!level || level->source != source)
		return false;
	ns = report_elapsed(level->from, ts);
	*ret_ns = ns - (level->within < ns ? level->within : ns);
	s->depth--;
	if (s->depth)
		s->levels[s->depth - 1].within += ns;
	else
		s->taken += ns;
	return true;
}

bool noise_stack_leave_switched(struct noise_stack *s, enum noise_source source, int32_t tid)
{
	unsigned i = s->switched_count;

	if (source != NOISE_SOFTIRQ)
		return false;
	while (i && s->switched[i - 1] != tid)
		i--;
	if (!i)
		return false;
	s->switched_count--;
	memmove(&s->switched[i - 1], &s->switched[i],
		(s->switched_count - i + 1) * sizeof(*s->switched));
	return true;
}

uint64_t noise_stack_taken(const struct noise_stack *s)
{
	uint64_t taken = s->taken;

	for (unsigned i = 0; i < s->depth; i++)
		taken += s->levels[i].within;
	return taken;
}

/* Without room the oldest one goes. */
static void noise_stack_keep(struct noise_stack *s, int32_t tid)
{
	if (s->switched_count == NOISE_DEPTH_MAX)
		memmove(s->switched, s->switched + 1, --s->switched_count * sizeof(*s->switched));
	s->switched[s->switched_count++] = tid;
}

void noise_stack_switch(struct noise_stack *s)
{
	for (unsigned i = 0; i < s->depth; i++)
		if (s->levels[i].source == NOISE_SOFTIRQ)
			noise_stack_keep(s, s->levels[i].tid);
	s->taken = 0;
	s->depth = 0;
}

unsigned noise_stack_lose(struct noise_stack *s)
{
	unsigned depth = s->depth;

	s->depth = s->switched_count = 0;
	s->taken = 0;
	s->lost = true;
	return depth;
}
