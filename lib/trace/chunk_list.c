/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/chunk_list.h"

#include <string.h>

#include "base/vec.h"

void chunk_list_deinit(struct chunk_list *l)
{
	free(l->refs);
	*l = (struct chunk_list){ 0 };
}

int chunk_list_add(struct chunk_list *l, const struct chunk_ref *ref)
{
	return vec_push(l->refs, l->count, l->cap, *ref);
}

const struct chunk_ref *chunk_list_get(const struct chunk_list *l, size_t n)
{
	if (n < l->forgotten || n - l->forgotten >= l->count)
		return NULL;
	return &l->refs[n - l->forgotten];
}

void chunk_list_forget(struct chunk_list *l, size_t n)
{
	size_t gone = MIN(n > l->forgotten ? n - l->forgotten : 0, l->count);

	if (!gone)
		return;
	memmove(l->refs, &l->refs[gone], (l->count - gone) * sizeof(l->refs[0]));
	l->count -= gone;
	l->forgotten += gone;
}
