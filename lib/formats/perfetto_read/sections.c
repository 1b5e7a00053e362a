/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/sections.h"

#include "base/io.h"

#define PIECE ((size_t)256 << 10)

void sections_init(struct sections *s, int fd, uint64_t limit)
{
	*s = (struct sections){ .fd = fd, .limit = limit };
}

void sections_deinit(struct sections *s)
{
	for (unsigned i = 0; i < SECTIONS_MAX; i++)
		buf_deinit(&s->text[i]);
	free(s->pieces);
	*s = (struct sections){ .fd = -EBADF };
}

static int can_not_write(int r, struct error *err)
{
	return error_errno(err, r, "can't write the marks");
}

/* What the text has so far becomes a piece. */
static int end_piece(struct sections *s, unsigned section)
{
	struct buf *text = &s->text[section];
	int r;

	if (s->count == s->cap) {
		size_t cap = MAX(s->cap * 2, (size_t)64);
		struct section_piece *pieces = reallocarray(s->pieces, cap, sizeof(*pieces));

		if (!pieces)
			return -ENOMEM;
		s->pieces = pieces;
		s->cap = cap;
	}
	r = write_full(s->fd, text->data, text->len);
	if (r < 0)
		return r;
	s->pieces[s->count++] = (struct section_piece){ section, text->len };
	s->written += text->len;
	buf_clear(text);
	return 0;
}

int sections_settle(struct sections *s, unsigned section, struct error *err)
{
	uint64_t bytes = s->written;
	int r = buf_error(&s->text[section]);

	for (unsigned i = 0; i < SECTIONS_MAX; i++)
		bytes += s->text[i].len;
	if (s->limit && bytes > s->limit)
		return error_set(err, -EDQUOT, "the marks take more than %llu bytes",
				 (unsigned long long)s->limit);
	if (r == 0 && s->text[section].len >= PIECE)
		r = end_piece(s, section);
	return r < 0 ? can_not_write(r, err) : 0;
}

/* Bytes of the file once more, further on or further back; the two don't overlap, or to < from. */
static int copy(struct sections *s, struct buf *room, uint64_t from, uint64_t to, uint64_t len)
{
	while (len) {
		size_t part = (size_t)MIN(len, (uint64_t)PIECE);
		ssize_t n = pread_full(s->fd, room->data, part, (off_t)from);
		int r;

		if (n < 0 || (size_t)n < part)
			return n < 0 ? (int)n : -EIO;
		if (lseek(s->fd, (off_t)to, SEEK_SET) < 0)
			return -errno;
		r = write_full(s->fd, room->data, part);
		if (r < 0)
			return r;
		from += part;
		to += part;
		len -= part;
	}
	return 0;
}

/* Behind end, all from the piece first on in order, and what is not in the file yet. */
static int append_ordered(struct sections *s, struct buf *room, size_t first, uint64_t begin,
			  uint64_t *end)
{
	for (unsigned section = 0; section < SECTIONS_MAX; section++) {
		uint64_t from = begin;
		int r;

		for (size_t i = first; i < s->count; i++) {
			const struct section_piece *p = &s->pieces[i];

			if (p->section == section) {
				r = copy(s, room, from, *end, p->len);
				if (r < 0)
					return r;
				*end += p->len;
			}
			from += p->len;
		}
		if (lseek(s->fd, (off_t)*end, SEEK_SET) < 0)
			return -errno;
		r = write_full(s->fd, s->text[section].data, s->text[section].len);
		if (r < 0)
			return r;
		*end += s->text[section].len;
		buf_clear(&s->text[section]);
	}
	return 0;
}

int sections_join(struct sections *s, struct error *err)
{
	uint64_t begin = 0, old_end = s->written, end = s->written;
	_cleanup_buf_ struct buf room = BUF_INIT;
	size_t first = 0;
	int r;

	/* Those that have their place already. */
	while (first < s->count && !s->pieces[first].section)
		begin += s->pieces[first++].len;
	r = buf_reserve(&room, PIECE) ? append_ordered(s, &room, first, begin, &end) : -ENOMEM;
	if (r == 0 && begin < old_end) {
		r = copy(s, &room, old_end, begin, end - old_end);
		end -= old_end - begin;
		if (r == 0 && ftruncate(s->fd, (off_t)end) < 0)
			r = -errno;
	}
	s->written = end;
	s->count = 0;
	return r < 0 ? can_not_write(r, err) : 0;
}
