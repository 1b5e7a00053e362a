/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make_ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void maker_index(const struct maker *m, struct stream_reader *r, struct ring_index *ring)
{
	struct chunk c;
	size_t n = 0;

	assert_int_equal(stream_reader_init(r, m->fd, NULL), 0);
	*ring = (struct ring_index){ .cpus = calloc(64, sizeof(*ring->cpus)) };
	assert_non_null(ring->cpus);
	while (stream_reader_next(r, &c, NULL) > 0) {
		struct cpu_chunks *cpu = NULL;

		for (size_t i = 0; i < ring->count; i++)
			if (ring->cpus[i].cpu == c.cpu)
				cpu = &ring->cpus[i];
		if (!cpu) {
			assert_true(ring->count < 64);
			cpu = &ring->cpus[ring->count++];
			cpu->cpu = c.cpu;
		}
		assert_int_equal(
			chunk_list_add(&cpu->list, &(struct chunk_ref){ .offset = c.offset,
									.length = c.length }),
			0);
		n++;
	}
	assert_true(n > 0);
}

void ring_deinit(struct ring_index *ring)
{
	for (size_t i = 0; i < ring->count; i++)
		chunk_list_deinit(&ring->cpus[i].list);
	free(ring->cpus);
}

void maker_layout(const struct maker *m, struct page_layout *ret)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	maker_header_page(m, &text);
	assert_int_equal(page_layout_parse(ret, text.data, text.len, m->word_size, m->big_endian,
					   m->subbuf_size, NULL),
			 0);
}

void maker_merge(const struct maker *m, struct made_merge *ret)
{
	maker_index(m, &ret->reader, &ret->ring);
	maker_layout(m, &ret->layout);
	assert_int_equal(merge_new(&ret->merge, &ret->layout, &ret->ring, &ret->reader, NULL), 0);
}

void made_merge_deinit(struct made_merge *m)
{
	merge_freep(&m->merge);
	ring_deinit(&m->ring);
}
