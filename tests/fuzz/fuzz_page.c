/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One byte: the kind of machine. The rest: a sub-buffer. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "export/page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct page_layout l = { 0 };
	struct page_iter it;
	struct record rec;
	uint8_t *page;
	int r;

	if (!size || size > 1 << 20)
		return 0;
	l.word_size = data[0] & 1 ? 4 : 8;
	l.big_endian = data[0] & 2;
	l.commit_offset = 8;
	l.commit_size = l.word_size;
	l.data_offset = 8 + l.word_size;
	l.subbuf_size = (uint32_t)size - 1;
	/* A block of its own, so that what is read beyond it is seen. */
	page = malloc(size - 1);
	if (!page)
		return 0;
	memcpy(page, data + 1, size - 1);
	r = page_iter_init(&it, &l, page, l.subbuf_size);
	if (r == 0)
		while (page_iter_next(&it, &rec) > 0)
			if (rec.data < page || rec.len > size - 1 ||
			    rec.data + rec.len > page + size - 1)
				abort();
	free(page);
	return 0;
}
