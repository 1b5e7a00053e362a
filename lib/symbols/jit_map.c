/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbols/jit_map.h"

#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/search.h"
#include "base/vec.h"

#define MAP_MAX (64U << 20) /* most bytes of a file */

struct entry {
	uint64_t start, size;
	uint32_t order; /* line number: the last line with a start counts, as code is recompiled */
	const char *name;
};

struct jit_map {
	struct buf text;
	struct entry *entries; /* owned; sorted by start */
	size_t count, cap;
};

struct jit_map *jit_map_free(struct jit_map *m)
{
	if (!m)
		return NULL;
	buf_deinit(&m->text);
	free(m->entries);
	free(m);
	return NULL;
}

static int jit_by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int jit_map_add_line(struct jit_map *m, char *line)
{
	struct entry e = { .order = (uint32_t)m->count };
	char *p;

	e.start = strtoull(line, &p, 16);
	if (p == line || *p != ' ')
		return 0;
	line = p;
	e.size = strtoull(line, &p, 16);
	if (p == line || *p != ' ' || !p[1] || !e.size || e.size > UINT64_MAX - e.start)
		return 0;
	e.name = p + 1;
	return vec_push(m->entries, m->count, m->cap, e);
}

int jit_map_read(struct jit_map **ret, int fd)
{
	_cleanup_(jit_map_freep) struct jit_map *m = calloc(1, sizeof(*m));
	const size_t piece = 64U << 10;
	char *next, *line;
	ssize_t n;

	if (!m)
		return -ENOMEM;
	do {
		char *to = m->text.len < MAP_MAX ? buf_reserve(&m->text, piece + 1) : NULL;

		if (!to)
			return m->text.failed ? -ENOMEM : -EFBIG;
		n = read_full(fd, to, piece);
		if (n < 0)
			return (int)n;
		m->text.len += (size_t)n;
	} while (n);
	next = buf_string(&m->text);
	while ((line = strsep(&next, "\n")))
		if (jit_map_add_line(m, line) < 0)
			return -ENOMEM;
	if (m->count)
		qsort(m->entries, m->count, sizeof(*m->entries), jit_by_start);
	*ret = TAKE_PTR(m);
	return 0;
}

const char *jit_map_find(const struct jit_map *m, uint64_t address)
{
	size_t low = lower_bound(i, m->count, m->entries[i].start <= address);

	if (!low || address - m->entries[low - 1].start >= m->entries[low - 1].size)
		return NULL;
	return m->entries[low - 1].name;
}
