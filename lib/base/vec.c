/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/vec.h"

/* Size of an array's first block, unless four elements need more. */
#define VEC_FIRST_BYTES 256
#define VEC_FIRST_LEAST 4

_cold_ _noinline_ void *vec_grow(void *data, size_t count, size_t extra, size_t *cap, size_t max,
				 size_t size)
{
	size_t first = MAX(VEC_FIRST_BYTES / size, (size_t)VEC_FIRST_LEAST), need, bigger;

	if (__builtin_add_overflow(count, extra, &need) || need > max)
		return NULL;
	bigger = *cap > max / 2 ? max : *cap * 2;
	bigger = MAX(MAX(bigger, need), MIN(first, max));
	data = reallocarray(data, bigger, size);
	if (data)
		*cap = bigger;
	return data;
}
