/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/chunk_cursor.h"

void chunk_source_deinit(struct chunk_source *s)
{
	buf_deinit(&s->scratch);
}

static void cursor_empty_window(struct chunk_cursor *c)
{
	buf_clear(&c->window);
	c->used = 0;
}

int chunk_cursor_reserve(struct chunk_cursor *c, struct chunk_source *s, size_t bytes)
{
	if (bytes <= c->window.cap)
		return 0;
	if (s->held - c->window.cap + bytes > s->held_max)
		return -EFBIG;
	/* Free first: realloc would copy stale bytes. */
	chunk_cursor_release(c, s);
	buf_reserve(&c->window, bytes);
	s->held += c->window.cap;
	return buf_error(&c->window);
}

void chunk_cursor_release(struct chunk_cursor *c, struct chunk_source *s)
{
	s->held -= c->window.cap;
	buf_deinit(&c->window);
	c->used = 0;
}

int chunk_cursor_enter(struct chunk_cursor *c, struct chunk_source *s,
		       const struct chunk_list *list, uint64_t limit, struct error *err)
{
	const struct chunk_ref *ref = chunk_list_get(list, c->next);

	if (!ref || ref->offset >= limit)
		return 0;
	c->next++;
	c->chunk = (struct chunk){
		.type = s->type,
		.offset = ref->offset,
		.length = ref->length,
	};
	c->skip = ref->skip;
	c->at = s->head;
	cursor_empty_window(c);
	if (ref->length > s->whole_max)
		return stream_reader_verify(s->reader, &c->chunk, &s->scratch, err) ?: 1;
	return 1;
}

int chunk_cursor_load(struct chunk_cursor *c, struct chunk_source *s, struct error *err)
{
	int r = stream_reader_load_max(s->reader, &c->chunk, s->whole_max, &c->window, err);

	c->at = c->chunk.length;
	c->from = 0;
	if (r < 0)
		cursor_empty_window(c);
	c->used = MIN(s->head, c->window.len);
	return r;
}

int chunk_cursor_load_part(struct chunk_cursor *c, struct chunk_source *s, uint32_t from,
			   uint32_t len, struct error *err)
{
	int r = stream_reader_load_part(s->reader, &c->chunk, from, len, &c->window, err);

	c->at = MAX(c->at, from + len);
	c->from = from;
	c->used = 0;
	if (r < 0)
		cursor_empty_window(c);
	return r;
}

void chunk_cursor_skip(struct chunk_cursor *c)
{
	c->at = c->chunk.length;
	cursor_empty_window(c);
}

uint64_t chunk_cursor_needs(const struct chunk_cursor *c, const struct chunk_list *list)
{
	const struct chunk_ref *next = chunk_list_get(list, c->next);

	if (chunk_cursor_inside(c))
		return c->chunk.offset;
	return next ? next->offset : UINT64_MAX;
}
