/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/noise_stack.h"

#include <stddef.h>

#include "report/kind.h"

unsigned noise_stack_enter(struct noise_stack *s, enum noise_source source, uint64_t ts)
{
	unsigned dropped = 0;

	if (s->depth == NOISE_DEPTH_MAX) {
		dropped = s->depth;
		s->depth = 0;
	}
	s->levels[s->depth++] = (struct noise_level){ source, ts, 0 };
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

uint64_t noise_stack_take(struct noise_stack *s)
{
	uint64_t taken = s->taken;

	s->taken = 0;
	s->depth = 0;
	return taken;
}

unsigned noise_stack_lose(struct noise_stack *s)
{
	unsigned depth = s->depth;

	s->depth = 0;
	s->taken = 0;
	s->lost = true;
	return depth;
}
