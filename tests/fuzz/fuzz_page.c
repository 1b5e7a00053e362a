/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two bytes: the kind of machine, and the bytes in each part. The rest: a sub-buffer, read as a
 * whole and in parts.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trace/page.h"

/* A block of its own, so that a sanitizer sees reads beyond it. */
static uint8_t *copy_of(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	return copy;
}

/* Reads as the merge does. */
struct parts {
	const uint8_t *page;
	uint32_t bytes; /* of a part */
	uint32_t at;	/* where the current part begins in the page */
	uint8_t *part;	/* owned */
	struct page_iter it;
};

static int parts_begin(struct parts *p, const struct page_layout *l)
{
	uint32_t n = MIN(p->bytes, l->subbuf_size);
	int r;

	p->part = copy_of(p->page, n);
	r = page_iter_init_part(&p->it, l, p->part, n, l->subbuf_size);
	if (r == 0 && p->it.missed_at) {
		uint8_t *word = copy_of(p->page + p->it.missed_at, l->word_size);

		page_iter_set_missed(&p->it, word);
		free(word);
	}
	return r;
}

static int parts_next(struct parts *p, struct record *ret)
{
	for (;;) {
		int r = page_iter_next(&p->it, ret);
		uint32_t at = p->it.pos, left = p->it.end - at + p->it.rest;
		uint32_t n;

		if (r != 0 || !p->it.rest)
			return r;
		n = at ? MIN(left, p->bytes) : page_iter_wants(&p->it);
		/* Otherwise it would never end. */
		if (!at && n <= p->it.end)
			abort();
		p->at += at;
		free(p->part);
		p->part = copy_of(p->page + p->at, n);
		page_iter_go_on(&p->it, p->part, n);
	}
}

static void same(bool is)
{
	if (!is)
		abort();
}

static void compare(const struct page_layout *l, const uint8_t *page, uint32_t part)
{
	struct parts p = { .page = page, .bytes = MAX(part, l->data_offset) };
	struct page_iter it;
	struct record a, b;
	int r = page_iter_init(&it, l, page, l->subbuf_size);

	same(l->subbuf_size < l->data_offset || parts_begin(&p, l) == r);
	if (r == 0)
		same(it.missed == p.it.missed);
	while (r == 0) {
		r = page_iter_next(&it, &a);
		same(parts_next(&p, &b) == r);
		if (r <= 0)
			break;
		same(a.data >= page && a.len <= l->subbuf_size &&
		     a.data + a.len <= page + l->subbuf_size);
		same(b.ts == a.ts && b.len == a.len && memcmp(b.data, a.data, a.len) == 0);
		same(p.at + p.it.start == it.start);
		r = 0;
	}
	free(p.part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct page_layout l = { 0 };
	uint8_t *page;

	if (size < 2 || size > 1 << 20)
		return 0;
	l.word_size = data[0] & 1 ? 4 : 8;
	l.big_endian = data[0] & 2;
	l.clock.differs = data[0] & 4;
	l.clock.mult = data[0] & 8 ? 3 : 0;
	l.clock.shift = 1;
	l.commit_offset = 8;
	l.commit_size = l.word_size;
	l.data_offset = 8 + l.word_size;
	l.subbuf_size = (uint32_t)size - 2;
	page = copy_of(data + 2, l.subbuf_size);
	compare(&l, page, data[1]);
	free(page);
	return 0;
}
