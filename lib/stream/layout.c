/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stream/layout.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct text {
	const char *p, *end;
};

static bool layout_skip(struct text *t, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(t->end - t->p) < len || memcmp(t->p, word, len) != 0)
		return false;
	t->p += len;
	return true;
}

static bool layout_number(struct text *t, uint32_t *ret)
{
	const char *start = t->p;
	uint32_t n = 0;

	for (; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++)
		if (__builtin_mul_overflow(n, 10U, &n) ||
		    __builtin_add_overflow(n, (uint32_t)(*t->p - '0'), &n))
			return false;
	*ret = n;
	return t->p > start;
}

/* Finds "field: TYPE NAME;\toffset:N;\tsize:N;". */
static bool layout_find_field(const char *text, size_t len, const char *name, uint32_t *offset,
			      uint32_t *size)
{
	struct text t = { text, text + len };

	while ((t.p = memchr(t.p, ' ', (size_t)(t.end - t.p)))) {
		t.p++;
		if (layout_skip(&t, name) && layout_skip(&t, ";\toffset:") &&
		    layout_number(&t, offset) && layout_skip(&t, ";\tsize:") &&
		    layout_number(&t, size) && layout_skip(&t, ";"))
			return true;
	}
	return false;
}

static bool layout_fits(uint32_t offset, uint32_t size, uint32_t end)
{
	return size <= end && offset <= end - size;
}

int subbuf_layout_parse(struct subbuf_layout *ret, const char *text, size_t len, uint32_t size)
{
	uint32_t timestamp_size, data_size;
	struct subbuf_layout l;

	if (!layout_find_field(text, len, "timestamp", &l.timestamp_offset, &timestamp_size) ||
	    !layout_find_field(text, len, "commit", &l.commit_offset, &l.commit_size) ||
	    !layout_find_field(text, len, "data", &l.data_offset, &data_size))
		return -EBADMSG;
	l.size = size;
	if (!size && layout_fits(l.data_offset, data_size, SUBBUF_SIZE_MAX))
		l.size = l.data_offset + data_size;
	if (timestamp_size != 8 || (l.commit_size != 4 && l.commit_size != 8) ||
	    l.size > SUBBUF_SIZE_MAX || l.data_offset % 4 ||
	    !layout_fits(l.timestamp_offset, timestamp_size, l.data_offset) ||
	    !layout_fits(l.commit_offset, l.commit_size, l.data_offset) ||
	    !layout_fits(l.data_offset, RECORD_HEADER, l.size))
		return -EBADMSG;
	*ret = l;
	return 0;
}
